// SPDX-License-Identifier: Apache-2.0
#include "fovea/kernel/convolution.h"

#include <string>

#include "fovea/reference/convolution.h"
#include "tests/kernel/support.h"

namespace fovea {
namespace {

const Context kContext(2);

// Lengths 0 and 1, shorter and longer than every window.
const std::vector<std::int32_t> kOffsets = {0, 0, 5, 6, 6, 8, 31, 44, 44};
constexpr index kRows = 44;

struct Sizes {
  index in, out;
  Window window;
};

std::vector<Sizes> all_sizes() {
  std::vector<Sizes> sizes;
  for (const Padding padding : {Padding::kSame, Padding::kCausal}) {
    for (index width = 1; width <= 7; ++width) sizes.push_back({5, 7, {width, padding, 1}});
    for (const index dilation : {2, 3, 9}) {
      sizes.push_back({17, 16, {3, padding, dilation}});
      sizes.push_back({16, 33, {4, padding, dilation}});
    }
    sizes.push_back({1, 1, {3, padding, 1}});
    sizes.push_back({130, 67, {3, padding, 1}});
    sizes.push_back({64, 128, {2, padding, 1}});
  }
  return sizes;
}

std::string name_of(const Sizes& s) {
  return fmt::format("in {}, out {}, width {}, {}, dilation {}", s.in, s.out, s.window.width,
                     s.window.padding == Padding::kSame ? "same" : "causal", s.window.dilation);
}

template <class T>
struct Problem {
  Problem(const Sizes& s, Random& random)
      : sizes(s),
        x(Matrix<T>::random(random, kRows, s.in)),
        weight(Matrix<T>::random(random, s.out, s.window.width * s.in)),
        bias(Matrix<T>::random(random, 1, s.out)),
        dy(Matrix<T>::random(random, kRows, s.out)) {}
  template <class U>
  explicit Problem(const Problem<U>& p)
      : sizes(p.sizes), x(p.x), weight(p.weight), bias(p.bias), dy(p.dy) {}

  reference::Convolution<T> plain() const {
    return {x.in(), weight.in(), bias.vec(), kOffsets, sizes.window};
  }

  Sizes sizes;
  Matrix<T> x, weight, bias, dy;
};

template <class T>
struct Results {
  explicit Results(const Sizes& s)
      : y(kRows, s.out), dx(kRows, s.in), dw(s.out, s.window.width * s.in) {}
  bool operator==(const Results& other) const {
    return y == other.y && dx == other.dx && dw == other.dw;
  }
  Matrix<T> y, dx, dw;
};

template <class T>
Results<T> in_loops(const Problem<T>& p) {
  Results<T> r(p.sizes);
  reference::convolution_forward(p.plain(), r.y.view());
  reference::convolution_backward<T>(p.plain(), p.dy.in(), {r.dx.view(), r.dw.view()});
  return r;
}

// Contiguous, as overlapping windows need it.
template <class T>
struct Spread {
  Spread(const Context& ctx, Rows<const T> x, const SpreadLayout& layout)
      : values(static_cast<std::size_t>(layout.rows * x.columns), T{99}),
        rows(values.data(), layout.rows, x.columns) {
    spread_rows(ctx, x, layout, rows);
  }
  std::vector<T> values;
  Rows<T> rows;
};

template <class T>
Results<T> by_products(const Context& ctx, const Problem<T>& p) {
  const auto [in, out, window] = p.sizes;
  std::vector<SpreadLayout::Run> runs(kOffsets.size());
  const auto layout = SpreadLayout::of(kOffsets, window.gap(), runs);
  const Spread<T> x(ctx, p.x.in(), layout), dy(ctx, p.dy.in(), layout);
  Results<T> r(p.sizes);
  PackedMatrix<T> taps;
  taps.pack(ctx, p.weight.in(), Form::kTransposed);
  WindowProduct<T> product{.spread = x.rows,
                           .layout = &layout,
                           .before = window.before(),
                           .width = window.width,
                           .dilation = window.dilation,
                           .taps = taps.panels(),
                           .y = r.y.view(),
                           .options = {.bias = p.bias.vec()}};
  window_product(ctx, product);
  Matrix<T> reversed(window.width * out, in);
  reverse_taps(ctx, p.weight.in(), window.width, reversed.view());
  taps.pack(ctx, reversed.in());
  product.spread = dy.rows;
  product.before = window.after();
  product.taps = taps.panels();
  product.y = r.dx.view();
  product.options = {};
  window_product(ctx, product);
  taps_gradient<T>(
      ctx, {.x = x.rows, .dy = dy.rows, .gap = layout.gap, .window = window, .dw = r.dw.view()});
  return r;
}

TEST(Convolution, ErrorIsAtMostTwiceThatOfPlainLoops) {
  Random random(50, RandomUse::kTest);
  for (const Sizes& sizes : all_sizes()) {
    SCOPED_TRACE(name_of(sizes));
    const Problem<float> problem(sizes, random);
    const auto plain = in_loops(problem);
    const auto exact = in_loops(Problem<double>(problem));
    for_each_isa([&] {
      const auto fast = by_products(kContext, problem);
      expect_no_worse(fast.y, plain.y, exact.y, "y");
      expect_no_worse(fast.dx, plain.dx, exact.dx, "dx");
      expect_no_worse(fast.dw, plain.dw, exact.dw, "dw");
      const auto fine = by_products(kContext, Problem<double>(problem));
      EXPECT_LE(largest_difference(fine.y.values(), exact.y.values()), 1e-12);
      EXPECT_LE(largest_difference(fine.dx.values(), exact.dx.values()), 1e-12);
      EXPECT_LE(largest_difference(fine.dw.values(), exact.dw.values()), 1e-12);
    });
  }
}

TEST(Convolution, LoopsHaveTheGradientsOfTheirForward) {
  Random random(51, RandomUse::kTest);
  for (const Sizes& sizes :
       {Sizes{2, 3, {3, Padding::kSame, 1}}, Sizes{2, 1, {4, Padding::kCausal, 2}}}) {
    Problem<double> p(sizes, random);
    const auto r = in_loops(p);
    const auto loss = [&] {
      Matrix<double> y(kRows, sizes.out);
      reference::convolution_forward(p.plain(), y.view());
      return dot(y, p.dy);
    };
    expect_gradient(p.x, r.dx, loss, "x");
    expect_gradient(p.weight, r.dw, loss, "weight");
  }
}

TEST(Convolution, SameBitsForAnyNumberOfThreads) {
  Random random(52, RandomUse::kTest);
  for (const index dilation : {1, 2}) {
    const Problem<float> problem({70, 140, {3, Padding::kSame, dilation}}, random);
    expect_same_for_threads([&](const Context& ctx) { return by_products(ctx, problem); });
  }
}

TEST(Convolution, WindowsSeeAsManyRowsBeforeAsAfter) {
  EXPECT_EQ((Window{3, Padding::kSame, 1}.before()), 1);
  EXPECT_EQ((Window{4, Padding::kSame, 1}.before()), 1) << "an even width sees one more after it";
  EXPECT_EQ((Window{4, Padding::kSame, 1}.after()), 2);
  EXPECT_EQ((Window{4, Padding::kSame, 3}.before()), 4);
  EXPECT_EQ((Window{4, Padding::kCausal, 3}.before()), 9);
  EXPECT_EQ((Window{4, Padding::kCausal, 3}.after()), 0);
}

TEST(Convolution, RowsAreSpreadWithZerosBetweenSequences) {
  const std::int32_t offsets[] = {0, 2, 2, 3};
  SpreadLayout::Run runs[3];
  const auto layout = SpreadLayout::of(offsets, 2, runs);
  ASSERT_EQ(layout.runs.size, 2);
  float x[] = {1, 2, 3};
  const Spread<float> spread(kContext, Rows<const float>(x, 3, 1), layout);
  EXPECT_THAT(spread.values, testing::ElementsAre(0, 0, 1, 2, 0, 0, 3, 0, 0));
}

// 0 x NaN is NaN: what lies beside a sequence must not be multiplied into it.
TEST(Convolution, ANeighbourThatIsNotANumberStaysWhereItIs) {
  Random random(53, RandomUse::kTest);
  for (const Padding padding : {Padding::kSame, Padding::kCausal}) {
    Problem<float> p({5, 7, {5, padding, 1}}, random);
    const auto before = by_products(kContext, p);
    for (index row = 6; row < 8; ++row)
      for (index c = 0; c < 5; ++c) p.x.at(row, c) = std::numeric_limits<float>::quiet_NaN();
    const auto after = by_products(kContext, p);
    for (index row = 0; row < kRows; ++row) {
      const bool is_neighbour = row >= 6 && row < 8;
      EXPECT_EQ(std::isnan(after.y.at(row, 0)), is_neighbour) << row;
      if (is_neighbour) continue;
      EXPECT_EQ(after.y.at(row, 3), before.y.at(row, 3)) << row;
    }
  }
}

TEST(Convolution, NamesTheShapesInItsErrors) {
  Matrix<float> x(4, 5), w(3, 10), y(4, 3);
  const std::int32_t offsets[] = {0, 4};
  SpreadLayout::Run runs[1];
  const auto layout = SpreadLayout::of(offsets, 1, runs);
  EXPECT_THROWS(spread_rows(kContext, x.in(), layout, y.view()), kShape,
                "spread_rows: to must be [6, 5]; it is [4, 3]");
  EXPECT_THROWS(reverse_taps(kContext, w.in(), 3, x.view()), kShape,
                "reverse_taps: [4, 5] is not [3 x 3, 5] turned");
  PackedMatrix<float> taps;
  taps.pack(kContext, w.in(), Form::kTransposed);
  EXPECT_THROWS(window_product<float>(kContext, {.spread = x.in(),
                                                 .layout = &layout,
                                                 .width = 3,
                                                 .taps = taps.panels(),
                                                 .y = y.view(),
                                                 .options = {}}),
                kShape, "convolution: 3 taps of 5 columns need as many rows of weights; got 10");
}

}  // namespace
}  // namespace fovea
