// SPDX-License-Identifier: Apache-2.0
#include "fovea/nn/experts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

#include "fovea/base/profile.h"
#include "tests/isa.h"
#include "tests/nn/pieces.h"
#include "tests/support/throws.h"

namespace fovea {
namespace {

constexpr index C = 23, F = 13, E = 5, K = 2;

ExpertsOptions options(index chosen = K) {
  // Gates beyond their limits.
  return {.width = C,
          .hidden = F,
          .experts = E,
          .chosen = chosen,
          .input_init = Init::normal(1.5),
          .output_init = Init::normal(0.3)};
}

std::vector<double> doubles(const ParameterSet& set, std::string_view name) {
  return to_vector(std::as_const(set.find(name)->value).to(DType::kFloat64).vec<double>());
}

// By the formula, in double, one row at a time.
std::vector<double> definition(const ParameterSet& set, const std::vector<float>& x, index chosen) {
  const auto router = doubles(set, "router.weight"), router_bias = doubles(set, "router.bias"),
             in = doubles(set, "in.weight"), in_bias = doubles(set, "in.bias"),
             out = doubles(set, "out.weight"), out_bias = doubles(set, "out.bias");
  const auto at = [](index n) { return static_cast<std::size_t>(n); };
  std::vector<double> all;
  for (index t = 0; t < std::ssize(x) / C; ++t) {
    const auto product = [&](const std::vector<double>& w, index row, index columns,
                             const auto& from) {
      double sum = 0;
      for (index c = 0; c < columns; ++c) sum += w[at(row * columns + c)] * from(c);
      return sum;
    };
    const auto input = [&](index c) { return double{x[at(t * C + c)]}; };
    std::vector<double> scores;
    for (index e = 0; e < E; ++e) {
      scores.push_back(product(router, e, C, input) + router_bias[at(e)]);
    }
    std::vector<index> order(at(E));
    std::iota(order.begin(), order.end(), index{0});
    std::ranges::stable_sort(order, std::greater(), [&](index e) { return scores[at(e)]; });
    order.resize(at(chosen));
    double total = 0;
    for (const index e : order) total += std::exp(scores[at(e)]);
    std::vector<double> y(at(C));
    for (const index e : order) {
      std::vector<double> hidden;
      for (index f = 0; f < F; ++f) {
        const index row = e * 2 * F + 2 * f;
        const double g = std::min(product(in, row, C, input) + in_bias[at(row)], 7.0);
        const double u =
            std::clamp(product(in, row + 1, C, input) + in_bias[at(row + 1)], -7.0, 7.0);
        hidden.push_back((u + 1) * g / (1 + std::exp(-1.702 * g)));
      }
      for (index c = 0; c < C; ++c) {
        const double made = product(out, e * C + c, F, [&](index f) { return hidden[at(f)]; }) +
                            out_bias[at(e * C + c)];
        y[at(c)] += std::exp(scores[at(e)]) / total * made;
      }
    }
    all.insert(all.end(), y.begin(), y.end());
  }
  return all;
}

TEST(Experts, HasTheParametersOfItsNetworks) {
  ParameterSet set({});
  const Experts layer(options(), ParameterScope(set));
  ASSERT_EQ(set.parameters().size(), 6);
  EXPECT_EQ(set.find("router.weight")->value.shape(), (Shape{E, C}));
  EXPECT_EQ(set.find("in.weight")->value.shape(), (Shape{E * 2 * F, C}));
  EXPECT_EQ(set.find("in.bias")->value.shape(), (Shape{E, 2 * F}));
  EXPECT_EQ(set.find("out.weight")->value.shape(), (Shape{E * C, F}));
  EXPECT_EQ(set.find("out.bias")->value.shape(), (Shape{E, C}));
}

// Few rows and many: products read weights in place, or packed.
TEST(Experts, IsTheFormula) {
  for (const index chosen : {index{1}, K, E}) {
    for (const index rows : {1, 7, 700}) {
      const auto x = noise(rows * C, 5);
      for_each_isa([&] {
        ParameterSet set({});
        const Experts layer(options(chosen), ParameterScope(set));
        randomise(set);
        const auto y = output_of([&](Tape& t) {
          return layer.forward(t, t.constant(Rows<const float>(x.data(), rows, C)));
        });
        const auto exact = definition(set, x, chosen);
        double error = 0, largest = 0;
        for (std::size_t n = 0; n < y.size(); ++n) {
          error = std::max(error, std::abs(y[n] - exact[n]));
          largest = std::max(largest, std::abs(exact[n]));
        }
        EXPECT_LE(error, 1e-5 * largest) << chosen << " of " << rows;
      });
    }
  }
}

TEST(Experts, GradientIsThatOfTheForward) {
  constexpr index N = 6, kWidth = 4;
  for (const index chosen : {1, 2, 3}) {
    auto set = float64_set();
    const ParameterScope scope(set);
    Parameter& x = scope.add("x", {N, kWidth}, Init::zeros());
    const Experts layer({.width = kWidth, .hidden = 3, .experts = 3, .chosen = chosen}, scope);
    expect_gradients(set, [&](Tape& t) { return layer.forward(t, t.parameter(x)); });
  }
}

// Beyond a limit what does not count has no gradient.
TEST(Experts, GatesHaveLimits) {
  const auto at = [](float g, float u) {
    ParameterSet set({});
    const Experts layer({.width = 1, .hidden = 1, .experts = 1, .chosen = 1}, ParameterScope(set));
    set.find("out.weight")->value.vec<float>()[0] = 1;
    const Vec<float> in = set.find("in.weight")->value.vec<float>();
    in[0] = g;
    in[1] = u;
    const float one = 1;
    Tape tape{Context(1)};
    const Variable y = layer.forward(tape, tape.constant(Rows<const float>(&one, 1, 1)));
    tape.backward(sum(tape, y));
    const auto gradient = set.find("in.weight")->finished_gradient().vec<float>();
    return std::array<float, 3>{y.value<float>()[0][0], gradient[0], gradient[1]};
  };
  EXPECT_NEAR(at(2, 3)[0], 4 * 2 / (1 + std::exp(-3.404F)), 1e-5);
  EXPECT_EQ(at(7, 3)[0], at(9, 3)[0]);
  EXPECT_EQ(at(2, 7)[0], at(2, 8)[0]);
  EXPECT_EQ(at(2, -7)[0], at(2, -8)[0]);
  EXPECT_NE(at(-7, 3)[0], at(-9, 3)[0]);
  EXPECT_EQ(at(9, 3)[1], 0);
  EXPECT_NE(at(7, 3)[1], 0);
  EXPECT_NE(at(-9, 3)[1], 0);
  EXPECT_EQ(at(2, 8)[2], 0);
  EXPECT_EQ(at(2, -8)[2], 0);
  EXPECT_NE(at(2, -6)[2], 0);
}

TEST(Experts, OfEqualScoresTheFirstAreChosen) {
  Tape tape(Context(1), TapeMode::kInference);
  const std::vector<float> scores = {1, 3, 3, 2, 0, 0, 0, 0};
  const ChosenExperts chosen =
      choose_experts(tape, tape.constant(Rows<const float>(scores.data(), 2, 4)), 3);
  EXPECT_THAT(to_vector(chosen.ids), testing::ElementsAre(1, 2, 3, 0, 1, 2));
  const auto weights = to_vector(chosen.weights.value<float>());
  EXPECT_FLOAT_EQ(weights[0], weights[1]);
  EXPECT_FLOAT_EQ(weights[0] + weights[1] + weights[2], 1);
  EXPECT_FLOAT_EQ(weights[2] / weights[0], std::exp(-1.F));
}

struct Pass {
  std::vector<float> y, dx = {};
  std::vector<std::vector<float>> gradients = {};
  bool operator==(const Pass&) const = default;
};

Pass pass_of(const std::vector<float>& x, index rows, int threads) {
  ParameterSet set({});
  const Experts layer(options(), ParameterScope(set));
  Tape tape{Context(threads)};
  const Variable input = tape.input(Rows<const float>(x.data(), rows, C));
  const Variable y = layer.forward(tape, input);
  Pass pass{.y = to_vector(y.value<float>())};
  tape.backward(sum(tape, multiply(tape, y, y)));
  pass.dx = to_vector(input.gradient<float>());
  for (Parameter* const one : set.parameters()) {
    pass.gradients.push_back(to_vector(one->finished_gradient().vec<float>()));
  }
  return pass;
}

TEST(Experts, SameBitsForAnyNumberOfThreads) {
  constexpr index kMany = 1500;
  const auto x = noise(kMany * C);
  const Pass one = pass_of(x, kMany, 1);
  for (const int threads : {2, 3, 8}) EXPECT_EQ(pass_of(x, kMany, threads), one);
}

TEST(Experts, NoBitOfARowDependsOnTheOthers) {
  constexpr index kMany = 400;
  const auto x = noise(kMany * C);
  for_each_isa([&] {
    const Pass all = pass_of(x, kMany, 2);
    for (const index n : {index{0}, index{17}, kMany - 1}) {
      const std::vector<float> row(x.begin() + n * C, x.begin() + (n + 1) * C);
      const Pass alone = pass_of(row, 1, 1);
      EXPECT_EQ(alone.y, std::vector<float>(all.y.begin() + n * C, all.y.begin() + (n + 1) * C));
      EXPECT_EQ(alone.dx, std::vector<float>(all.dx.begin() + n * C, all.dx.begin() + (n + 1) * C));
    }
  });
}

// Whatever is chosen: rows that all take the same experts, and rows that take all of them.
TEST(Experts, APlanKnowsTheMemoryOfATapeToTheByte) {
  constexpr index kMany = 300;
  const auto peak = [&](const Context& context, const std::vector<float>& x, TapeMode mode) {
    ParameterSet set({});
    const Experts layer(options(), ParameterScope(set));
    Profile profile;
    Tape tape(context.profiled(profile), mode);
    const Variable y = layer.forward(tape, tape.constant(Rows<const float>(x.data(), kMany, C)));
    if (mode == TapeMode::kTrain) tape.backward(sum(tape, y));
    double flops = 0;
    for (const Profile::Part& part : profile.parts()) flops += part.work.flops;
    return std::pair(tape.peak(), flops);
  };
  const auto many = noise(kMany * C);
  const std::vector<float> same(static_cast<std::size_t>(kMany * C), 0.5F);
  for (const TapeMode mode : {TapeMode::kTrain, TapeMode::kInference}) {
    Plan plan;
    const auto planned = peak(Context(2).planned(plan), many, mode);
    EXPECT_EQ(peak(Context(2), many, mode), planned);
    EXPECT_EQ(peak(Context(2), same, mode), planned);
  }
}

TEST(Experts, RefusesWhatDoesNotFit) {
  ParameterSet set({});
  const ParameterScope scope(set);
  EXPECT_THROWS(Experts({.width = 4, .hidden = 4, .experts = 2, .chosen = 3}, scope["a"]), kShape,
                "3 of 2 are chosen");
  const Experts layer(options(), scope["b"]);
  const auto x = noise(20);
  Tape tape(Context(1), TapeMode::kInference);
  EXPECT_THROWS(layer.forward(tape, tape.constant(Rows<const float>(x.data(), 2, 5))), kShape,
                "weight must be [5, 5]");
  EXPECT_THROWS(choose_experts(tape, tape.constant(Rows<const float>(x.data(), 2, 3)), 4), kShape,
                "4 of 3");
}

}  // namespace
}  // namespace fovea
