// SPDX-License-Identifier: Apache-2.0
// Every bias against its own definition: whole tiles, and gradients, in both layouts.
#include "fovea/attention/bias/bias.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <string>

#include "fovea/attention/attention.h"
#include "tests/attention/support/table.h"
#include "tests/isa.h"
#include "tests/support/throws.h"

namespace fovea::testing {
namespace {

using ::testing::ElementsAre;

constexpr index kQueries = 19, kKeys = 37, kFirstQuery = 21, kFirstKey = 5;

template <class V>
struct Tile {
  std::vector<V> values;
  index stride;
  TileLanes lanes;

  explicit Tile(TileLanes l)
      : values(normals<V>(8, kQueries * (kKeys + kQueries))),
        stride(l == TileLanes::kQueries ? kQueries + 2 : kKeys + 2),
        lanes(l) {
    values.resize(static_cast<std::size_t>(stride * (kQueries + kKeys)));
  }
  ScoreTile<V> view() { return {values.data(), stride, lanes}; }
};

// The rows behind the tile, and the gradients of those.
template <class V>
struct TileMemory {
  static constexpr index kWidth = PartData<V>::kWidth;
  std::vector<V> q = normals<V>(9, kQueries*kWidth), k = normals<V>(10, kKeys*kWidth);
  std::vector<V> dq = std::vector<V>(q.size(), V{1}), dk = std::vector<V>(k.size(), V{1});

  TileRows<V> rows() const {
    return {{q.data(), kQueries, kWidth}, {k.data(), kKeys, kWidth}, V{0.5}};
  }
  TileGradients<V> gradients(std::vector<double>& sums) {
    return {{dq.data(), kQueries, kWidth}, {dk.data(), kKeys, kWidth}, sums.data()};
  }
};

// `ulps` is what a value may differ by, and of its gradient the factor that it is multiplied by.
template <class V>
void expect_tile_is_definition(const BiasPart<V>& part, double ulps = 0, double size = 0) {
  const double near = ulps * std::numeric_limits<V>::epsilon();
  const double terms = std::numeric_limits<V>::epsilon() * size * kQueries * kKeys;
  const Sequence sequence{.queries = 50, .keys = 60};
  const TileSite site{sequence, 1, kFirstQuery, kQueries, kFirstKey, kKeys};
  for (const TileLanes lanes : {TileLanes::kQueries, TileLanes::kKeys}) {
    Tile<V> before(lanes), after(lanes), gradient(lanes), pulled(lanes);
    TileMemory<V> memory, expected_memory;
    const TileRows<V> rows = memory.rows(), given = part.needs_rows() ? rows : TileRows<V>{};
    part.apply(site, given, after.view());
    for (index c = 0; c < kKeys; c += 5) gradient.view().at(3, c) = 0;  // dropped
    pulled = gradient;
    std::vector<double> sums(static_cast<std::size_t>(part.gradient_size()), 0.25), expected = sums;
    part.pull(site, given, before.view(), pulled.view(), memory.gradients(sums));
    for (index r = 0; r < kQueries; ++r) {
      for (index c = 0; c < kKeys; ++c) {
        const ScoreSite at = site.at(r, c);
        const V score = before.view().at(r, c), dscore = gradient.view().at(r, c);
        const V value = part.apply_one(at, rows.at(r, c), score);
        EXPECT_NEAR(after.view().at(r, c), value, near * std::max<double>(std::abs(value), size));
        const V dread = part.pull_one(at, rows.at(r, c), score, dscore,
                                      expected_memory.gradients(expected).at(r, c));
        EXPECT_NEAR(pulled.view().at(r, c), dread, near * std::abs(dscore));
      }
    }
    for (std::size_t n = 0; n < sums.size(); ++n) {
      EXPECT_NEAR(sums[n], expected[n], 1e-10 * (1 + std::abs(expected[n])) + terms);
    }
    const auto compare = [&](const std::vector<V>& now, const std::vector<V>& then) {
      for (std::size_t n = 0; n < now.size(); ++n) {
        const double right = then[n];
        EXPECT_NEAR(now[n], right, near * std::max(std::abs(right), size));
      }
    };
    compare(memory.dq, expected_memory.dq);
    compare(memory.dk, expected_memory.dk);
  }
}

// s -> s + a s^2 + b: everything that the default apply() and pull() can be asked.
template <class V>
class Quadratic final : public ScoreFunction<V> {
 public:
  explicit Quadratic(double* gradient) : gradient_(gradient) {}
  V value(const ScoreSite&, V s) const override { return s + V{0.25} * s * s + V{0.5}; }
  V derivative(const ScoreSite&, V s) const override { return 1 + V{0.5} * s; }
  index gradient_size() const override { return 2; }
  void add_parameters(const ScoreSite&, V s, V ds, double* sums) const override {
    sums[0] += static_cast<double>(ds) * static_cast<double>(s) * static_cast<double>(s);
    sums[1] += static_cast<double>(ds);
  }
  void store_gradient(const double* sums, index heads) const override {
    for (index n = 0; gradient_ != nullptr && n < 2 * heads; ++n) gradient_[n] = sums[n];
  }
  std::string name() const override { return "quadratic"; }

 private:
  double* gradient_;
};

// score += scale (q . a + b . k): what it adds depends on both rows, and its parameters a and b.
template <class V>
class RowSums final : public BiasPart<V> {
 public:
  explicit RowSums(index D, std::vector<double>* gradient) : D_(D), gradient_(gradient) {}
  V apply_one(const ScoreSite&, const ScoreRows<V>& rows, V score) const override {
    V sum = 0;
    for (index d = 0; d < D_; ++d) sum += a(d) * rows.q[d] + b(d) * rows.k[d];
    return score + rows.scale * sum;
  }
  V pull_one(const ScoreSite&, const ScoreRows<V>& rows, V, V dscore,
             const ScoreGradients<V>& gradients) const override {
    for (index d = 0; d < D_; ++d) {
      gradients.dq[d] += rows.scale * dscore * a(d);
      gradients.dk[d] += rows.scale * dscore * b(d);
      gradients.parameters[d] += static_cast<double>(rows.scale * dscore * rows.q[d]);
      gradients.parameters[D_ + d] += static_cast<double>(rows.scale * dscore * rows.k[d]);
    }
    return dscore;
  }
  bool needs_scores() const override { return false; }
  index gradient_size() const override { return 2 * D_; }
  void store_gradient(const double* sums, index heads) const override {
    gradient_->assign(sums, sums + heads * gradient_size());
  }
  std::string name() const override { return "row sums"; }

 private:
  static V a(index d) { return static_cast<V>(d + 1) / 4; }
  static V b(index d) { return static_cast<V>(3 - d) / 8; }
  index D_;
  std::vector<double>* gradient_;
};

template <class V>
void expect_every_part() {
  PartData<V> data;
  double gradient[4];
  expect_tile_is_definition<V>(Quadratic<V>(gradient));
  for (const BiasRow<V>& row : bias_table<V>()) {
    SCOPED_TRACE(row.name);
    const Bias<V> bias = row.make(data);
    for (const auto& part : bias.parts()) expect_tile_is_definition<V>(*part, row.ulps, row.size);
  }
}

TEST(Bias, TilesAreTheDefinition) {
  for_each_isa([] {
    expect_every_part<float>();
    expect_every_part<double>();
  });
}

// Two parts do not commute: the order is that of the sum.
TEST(Bias, PartsAreAppliedInOrderAndUndoneInReverse) {
  for_each_isa([] {
    const std::vector<double> slopes = {0.3, 0.1};
    for (const bool alibi_first : {true, false}) {
      std::vector<double> gradient(4), dslopes(2), reference_gradient, reference_dslopes;
      const bias::Alibi<double> alibi({slopes.data(), 2}, {dslopes.data(), 2});
      const Quadratic<double> quadratic(gradient.data());
      const Attention<double> attention{.bias = alibi_first ? alibi + quadratic : quadratic + alibi,
                                        .mask = mask::Causal()};
      EXPECT_EQ(attention.bias.name(), alibi_first ? "alibi + quadratic" : "quadratic + alibi");
      Call<double> fused({.T = 70, .S = 130, .H = 2, .G = 1, .D = 5, .Dv = 5}, 1);
      Call<double> reference = fused;
      reference.run(attention, Method::kReference);
      reference_gradient.swap(gradient);
      reference_dslopes = dslopes;
      gradient.resize(4);
      const Attention<double> again{.bias = alibi_first
                                                ? alibi + Quadratic<double>(gradient.data())
                                                : Quadratic<double>(gradient.data()) + alibi,
                                    .mask = mask::Causal()};
      fused.run(again);
      EXPECT_LE(difference(fused.o, reference.o), 1e-12);
      EXPECT_LE(difference(fused.dq, reference.dq), 1e-11);
      EXPECT_LE(difference(fused.dk, reference.dk), 1e-11);
      EXPECT_LE(difference(gradient, reference_gradient), 1e-10);
      EXPECT_LE(difference(dslopes, reference_dslopes), 1e-10);
    }
  });
}

// What a part adds to the gradients of the rows behind its scores joins dq and dk, in the tiles as
// in the definition, for grouped heads and any scale.
TEST(Bias, APartThatReadsRowsReachesTheirGradients) {
  for_each_isa([] {
    std::vector<double> gradient, reference_gradient;
    const auto attention = [](std::vector<double>* to) {
      return Attention<double>{.score = score::Dot{0.7},
                               .bias = RowSums<double>(5, to) + Quadratic<double>(nullptr),
                               .mask = mask::Causal() & mask::Window(50, 0)};
    };
    Call<double> fused({.B = 2, .T = 70, .S = 130, .H = 4, .G = 2, .D = 5, .Dv = 3}, 2);
    Call<double> reference = fused;
    fused.run(attention(&gradient), Method::kFused, 2);
    reference.run(attention(&reference_gradient), Method::kReference);
    EXPECT_LE(difference(fused.o, reference.o), 1e-12);
    EXPECT_LE(difference(fused.dq, reference.dq), 1e-11);
    EXPECT_LE(difference(fused.dk, reference.dk), 1e-11);
    EXPECT_EQ(gradient.size(), 4u * 10);
    EXPECT_LE(difference(gradient, reference_gradient), 1e-10);
  });
}

TEST(Bias, TheDefinitionOfAPartThatReadsRowsHasItsDerivative) {
  Call<double> call({.T = 3, .S = 4, .H = 2, .G = 1, .D = 3, .Dv = 2}, 4);
  std::vector<double> gradient;
  const Attention<double> attention{.bias = RowSums<double>(3, &gradient), .mask = mask::Causal()};
  call.run(attention, Method::kReference);
  const auto loss = [&] {
    Call<double> other = call;
    other.forward(attention, Method::kReference);
    double sum = 0;
    for (std::size_t i = 0; i < other.o.size(); ++i) sum += other.o[i] * call.d_o[i];
    return sum;
  };
  for (auto [x, dx] : {std::pair{&call.q, &call.dq}, {&call.k, &call.dk}}) {
    for (std::size_t i = 0; i < x->size(); ++i) {
      const double old = (*x)[i], step = 1e-5;
      (*x)[i] = old + step;
      const double above = loss();
      (*x)[i] = old - step;
      const double below = loss();
      (*x)[i] = old;
      EXPECT_NEAR((above - below) / (2 * step), (*dx)[i], 1e-9);
    }
  }
}

TEST(Bias, TheDefinitionNeedsNoGradientThatIsNotWanted) {
  Call<double> all({.T = 5, .S = 4, .D = 3, .Dv = 3}, 3), some = all;
  std::vector<double> gradient, gradient_alone;
  all.run({.bias = RowSums<double>(3, &gradient)}, Method::kReference);
  const Attention<double> attention{.bias = RowSums<double>(3, &gradient_alone)};
  some.forward(attention, Method::kReference);
  attention_reference_backward<double>(attention, some.in(), some.saved(), {});
  EXPECT_EQ(gradient_alone, gradient);
}

// The slopes of the paper, and the rule for other numbers of heads.
TEST(AlibiSlopes, ArePowersOfTwo) {
  const std::vector<float> of_call = alibi_slopes(8);
  EXPECT_THAT(of_call, ElementsAre(.5, .25, .125, .0625, .03125, .015625, .0078125, .00390625));
  EXPECT_THAT(alibi_slopes<double>(1), ElementsAre(0.00390625));
  EXPECT_THAT(alibi_slopes(6), ElementsAre(.25, .0625, .015625, .00390625, .5, .125));
  EXPECT_EQ(alibi_slopes<double>(16)[0], std::exp2(-0.5));
  EXPECT_THROWS(alibi_slopes(0), kShape, "there must be a head; got 0");
}

// A lambda is the part that one would write by hand, in both directions, with its parameters.
TEST(BiasOf, ALambdaIsThePartWrittenByHand) {
  std::array<double, 2> p = {0.25, 0.5}, dp = {};
  std::vector<double> gradient(4);
  const auto run = [](const Bias<double>& bias) {
    Call<double> call({.T = 70, .S = 130, .H = 2, .G = 1, .D = 5, .Dv = 5}, 1);
    call.run({.bias = bias, .mask = mask::Causal()});
    return call;
  };
  const auto lambda = [](auto s, const ScoreSite&) { return s + 0.25 * s * s + 0.5; };
  const Call<double> by_hand = run(Quadratic<double>(gradient.data()));
  const auto expect_same = [&](const Call<double>& call) {
    EXPECT_LE(difference(call.o, by_hand.o), 1e-14);
    EXPECT_LE(difference(call.dq, by_hand.dq), 1e-13);
    EXPECT_LE(difference(call.dk, by_hand.dk), 1e-13);
  };
  const auto words = [](auto, const ScoreSite&) { return std::string(); };
  static_assert(detail::ScoreLambda<decltype(lambda), double>);
  static_assert(!detail::ScoreLambda<decltype(words), double>);
  expect_same(run(bias::of<double>(lambda)));
  expect_same(run(bias::of<double>(
      lambda, [](double s, const ScoreSite&) { return 1 + 0.5 * s; }, "by hand")));
  expect_same(
      run(bias::of(bias::Learned<double, 2>{p, dp}, [](auto s, const ScoreSite&, const auto& a) {
        return s + a[0] * s * s + a[1];
      })));
  EXPECT_NEAR(dp[0], gradient[0] + gradient[2], 1e-10) << "summed over the heads";
  EXPECT_NEAR(dp[1], gradient[1] + gradient[3], 1e-10);
  EXPECT_EQ(bias::of<double>(lambda).name(), "function (score by score: it takes a ScoreSite)");
  EXPECT_EQ(bias::of<double>(lambda, "mine").name(), "mine (score by score: it takes a ScoreSite)");
}

// Every function of a dual number against central differences.
TEST(BiasOf, DualNumbersHaveTheDerivative) {
  const auto expect_derivative = [](const char* name, auto f) {
    for (const double x : {0.3, 0.7, 1.9}) {
      const double h = 1e-6;
      const double expected =
          (f(detail::Dual<double>(x + h)).value - f(detail::Dual<double>(x - h)).value) / (2 * h);
      EXPECT_NEAR(f(detail::Dual<double>(x, 1)).derivative, expected, 1e-8) << name << " at " << x;
    }
  };
  expect_derivative("x + 2 x - x / 3", [](auto x) { return x + 2 * x - x / 3; });
  expect_derivative("1 / (x - 5) * x", [](auto x) { return 1 / (x - 5) * x; });
  expect_derivative("exp", [](auto x) { return exp(-x); });
  expect_derivative("log", [](auto x) { return log(x); });
  expect_derivative("tanh", [](auto x) { return tanh(x); });
  expect_derivative("sqrt", [](auto x) { return sqrt(x); });
  expect_derivative("sin", [](auto x) { return sin(x) * cos(2 * x); });
  expect_derivative("abs", [](auto x) { return abs(x - 1) + abs(x); });
  expect_derivative("min, max", [](auto x) { return min(x * x, 0.6 + x) - max(x, 1); });
  expect_derivative("branches", [](auto x) { return x < 1 ? x * x : (x >= 1.5 ? 3 * x : x); });
  expect_derivative("in place", [](auto x) {
    auto y = x;
    y += 2;
    y *= x;
    y -= 3 * x;
    return y /= x + 1;
  });
}

// Slopes of the paper for 8 heads (Press et al. 2022, section 3).
TEST(Bias, AlibiIsTheDistanceTimesTheSlope) {
  const Sequence sequence{.queries = 3, .keys = 5};
  const std::vector<double> slopes = {0.5,     0.25,     0.125,     0.0625,
                                      0.03125, 0.015625, 0.0078125, 0.00390625};
  const bias::Alibi<double> alibi({slopes.data(), 8});
  EXPECT_EQ(alibi.value({sequence, 0, 0, 0}, 1), 1 - 0.5 * 2) << "query 0 stands at key 2";
  EXPECT_EQ(alibi.value({sequence, 7, 2, 4}, 1), 1);
  EXPECT_EQ(alibi.value({sequence, 1, 0, 4}, 0), -0.25 * 2) << "ahead as behind";
}

TEST(Bias, NoneIsCalledNone) { EXPECT_EQ(Bias<float>().name(), "none"); }

}  // namespace
}  // namespace fovea::testing
