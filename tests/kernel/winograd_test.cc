// SPDX-License-Identifier: Apache-2.0
#include <string>

#include "fovea/kernel/convolution.h"
#include "fovea/reference/convolution.h"
#include "fovea/reference/kernels.h"
#include "tests/kernel/support.h"

namespace fovea {
namespace {

const Context kContext(2);

// Lengths 0, 1, odd and even; more pairs than one item has.
const std::vector<std::int32_t> kOffsets = {0, 0, 5, 6, 6, 8, 31, 44, 44, 243};
constexpr index kRows = 243;

template <class T>
struct Problem {
  Problem(index in, index out, Padding p, Random& random)
      : padding(p),
        x(Matrix<T>::random(random, kRows, in)),
        taps(Matrix<T>::random(random, out, 3 * in)),
        bias(Matrix<T>::random(random, 1, out)),
        dy(Matrix<T>::random(random, kRows, out)) {}
  template <class U>
  explicit Problem(const Problem<U>& p)
      : padding(p.padding), x(p.x), taps(p.taps), bias(p.bias), dy(p.dy) {}

  reference::Convolution<T> plain() const {
    return {x.in(), taps.in(), bias.vec(), kOffsets, {3, padding, 1}};
  }

  Padding padding;
  Matrix<T> x, taps, bias, dy;
};

template <class T>
struct Results {
  explicit Results(const Problem<T>& p)
      : y(kRows, p.dy.columns()),
        slope(kRows, p.dy.columns()),
        dx(kRows, p.x.columns()),
        dw(p.taps.rows(), p.taps.columns()) {}
  bool operator==(const Results& o) const {
    return y == o.y && slope == o.slope && dx == o.dx && dw == o.dw;
  }
  Matrix<T> y, slope, dx, dw;
};

// With an activation after the forward; dy is the gradient before it.
template <class T>
Results<T> in_loops(const Problem<T>& p, Activation f) {
  Results<T> r(p);
  reference::convolution_forward(p.plain(), r.y.view());
  for (index n = 0; n < kRows; ++n)
    for (index c = 0; c < r.y.columns(); ++c) {
      r.slope.at(n, c) = reference::activate_gradient(f, r.y.at(n, c));
      r.y.at(n, c) = reference::activate(f, r.y.at(n, c));
    }
  reference::convolution_backward<T>(p.plain(), p.dy.in(), {r.dx.view(), r.dw.view()});
  return r;
}

template <class T>
struct Planes {
  Planes(index rows, index columns) : matrices(4, Matrix<T>(rows, columns)) {}
  Four<T> views() {
    return {matrices[0].view(), matrices[1].view(), matrices[2].view(), matrices[3].view()};
  }
  std::vector<Matrix<T>> matrices;
};

template <class T>
Results<T> fast(const Context& ctx, const Problem<T>& p, Activation f) {
  const index in = p.x.columns(), out = p.dy.columns();
  const Window window{3, p.padding, 1};
  std::vector<PairLayout::Run> runs(kOffsets.size());
  const auto layout = PairLayout::of(kOffsets, runs);
  Results<T> r(p);
  Matrix<T> u1(out, in), u2(out, in);
  winograd_weights(ctx, p.taps.in(), u1.view(), u2.view());
  const auto taps = p.taps.in();
  const Four<const T> u = {taps.columns_slice(0, in), u1.in(), u2.in(),
                           taps.columns_slice(2 * in, 3 * in)};
  PackedMatrix<T> packed[4];
  for (std::size_t k = 0; k < 4; ++k) packed[k].pack(ctx, u[k], Form::kTransposed);
  const auto panels = [&](int a, int b) {
    return std::array<Panels<T>, 4>{packed[a].panels(), packed[1].panels(), packed[2].panels(),
                                    packed[b].panels()};
  };
  Planes<T> differences(layout.pairs, in);
  winograd_forward<T>(ctx,
                      {.x = p.x.in(),
                       .layout = &layout,
                       .before = window.before(),
                       .u = panels(0, 3),
                       .y = r.y.view(),
                       .options = {.bias = p.bias.vec(), .activation = f, .slope = r.slope.view()},
                       .differences = differences.views()});
  for (std::size_t k = 0; k < 4; ++k) packed[k].pack(ctx, u[k]);
  winograd_forward<T>(ctx, {.x = p.dy.in(),
                            .layout = &layout,
                            .before = window.after(),
                            .u = panels(3, 0),
                            .y = r.dx.view(),
                            .options = {}});
  winograd_weight_gradient<T>(
      ctx,
      {.differences = differences.views(), .dy = p.dy.in(), .layout = &layout, .dw = r.dw.view()});
  return r;
}

TEST(Winograd, ErrorIsAtMostTwiceThatOfPlainLoops) {
  Random random(61, RandomUse::kTest);
  for (const auto& [in, out] :
       {std::pair<index, index>{1, 1}, {7, 5}, {16, 64}, {67, 33}, {130, 128}}) {
    for (const Padding padding : {Padding::kSame, Padding::kCausal}) {
      SCOPED_TRACE(fmt::format("in {}, out {}", in, out));
      const Activation f = padding == Padding::kSame ? Activation::kGelu : Activation::kRelu;
      const Problem<float> problem(in, out, padding, random);
      const auto plain = in_loops(problem, f);
      const auto exact = in_loops(Problem<double>(problem), f);
      for_each_isa([&] {
        const auto got = fast(kContext, problem, f);
        expect_no_worse(got.y, plain.y, exact.y, "y");
        if (f == Activation::kGelu) expect_no_worse(got.slope, plain.slope, exact.slope, "slope");
        expect_no_worse(got.dx, plain.dx, exact.dx, "dx");
        expect_no_worse(got.dw, plain.dw, exact.dw, "dw");
        const auto fine = fast(kContext, Problem<double>(problem), f);
        EXPECT_LE(largest_difference(fine.y.values(), exact.y.values()), 1e-11);
        EXPECT_LE(largest_difference(fine.dx.values(), exact.dx.values()), 1e-11);
        EXPECT_LE(largest_difference(fine.dw.values(), exact.dw.values()), 1e-11);
      });
    }
  }
}

// A large common part of all rows, which the differences take away, is the hardest for sums and
// differences of rows.
TEST(Winograd, ErrorIsBoundedWhereRowsAreNearlyEqual) {
  Random random(62, RandomUse::kTest);
  Problem<float> problem(64, 64, Padding::kSame, random);
  for (index n = 0; n < kRows; ++n)
    for (index c = 0; c < 64; ++c) {
      problem.x.at(n, c) += 100;
      problem.dy.at(n, c) -= 100;
    }
  const auto plain = in_loops(problem, Activation::kNone);
  const auto exact = in_loops(Problem<double>(problem), Activation::kNone);
  for_each_isa([&] {
    const auto got = fast(kContext, problem, Activation::kNone);
    expect_no_worse(got.y, plain.y, exact.y, "y");
    expect_no_worse(got.dx, plain.dx, exact.dx, "dx");
    expect_no_worse(got.dw, plain.dw, exact.dw, "dw");
  });
}

TEST(Winograd, SameBitsForAnyNumberOfThreads) {
  Random random(63, RandomUse::kTest);
  const Problem<float> problem(70, 140, Padding::kSame, random);
  expect_same_for_threads(
      [&](const Context& ctx) { return fast(ctx, problem, Activation::kSilu); });
}

TEST(Winograd, PairsEndWithTheirSequence) {
  PairLayout::Run runs[9];
  const auto layout = PairLayout::of(kOffsets, runs);
  ASSERT_EQ(layout.runs.size, 6);
  EXPECT_EQ(layout.pairs, 3 + 1 + 1 + 12 + 7 + 100);
  EXPECT_EQ(layout.runs[3].packed, 8);
  EXPECT_EQ(layout.runs[3].pair, 5);
}

TEST(Winograd, ANeighbourThatIsNotANumberStaysWhereItIs) {
  Random random(64, RandomUse::kTest);
  Problem<float> p(5, 7, Padding::kSame, random);
  for (index c = 0; c < 5; ++c) p.x.at(6, c) = std::numeric_limits<float>::quiet_NaN();
  for (index c = 0; c < 5; ++c) p.x.at(20, c) = std::numeric_limits<float>::infinity();
  const auto got = fast(kContext, p, Activation::kNone);
  for (index row = 0; row < kRows; ++row) {
    const bool sees = row == 6 || row == 7 || (row >= 19 && row <= 21);
    EXPECT_EQ(!std::isfinite(got.y.at(row, 0)), sees) << row;
  }
}

TEST(Winograd, NamesTheShapesInItsErrors) {
  Matrix<float> taps(3, 10), u(3, 3);
  EXPECT_THROWS(winograd_weights(kContext, taps.in(), u.view(), u.view()), kShape,
                "winograd_weights: taps must be [3, 9]; it is [3, 10]");
}

}  // namespace
}  // namespace fovea
