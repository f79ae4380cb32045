// SPDX-License-Identifier: Apache-2.0
#include "fovea/nn/low_rank.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "fovea/grad/ops.h"
#include "fovea/nn/linear.h"
#include "tests/support/throws.h"
#include "tests/support/vectors.h"

namespace fovea {
namespace {

constexpr index kIn = 5, kOut = 6, kRows = 7, kRank = 2;
constexpr double kScale = 1.5;

// A layer whose rows 1 to 4 and 4 to 6 have adapters, none of them zero.
struct Adapted {
  explicit Adapted(DType dtype = DType::kFloat64)
      : set(ParameterSetOptions{.seed = 3, .dtype = dtype}),
        layer({.in = kIn, .out = kOut}, ParameterScope(set)["layer"]) {}

  void adapt() {
    const std::vector<LowRankTarget> targets = {{"one", set.find("layer.weight"), 1, 3},
                                                {"two", set.find("layer.weight"), 4, 2}};
    adapters = std::make_unique<LowRankAdapters>(
        set.parameters(), targets, LowRankOptions{.rank = kRank, .scale = kScale, .seed = 5});
    for (Parameter* const one : adapters->parameters()) {
      initialise(one->value, Init::normal(0.5),
                 Random(static_cast<std::uint64_t>(one->value.size()), RandomUse::kInit, 0));
      ++one->version;
    }
    adapters->merge(Context(1));
  }

  Variable loss(Tape& tape, Activation f = Activation::kNone) {
    const Variable x = tape.input<double>({inputs.data(), kRows, kIn});
    const Variable y = layer.forward(tape, x, f);
    return sum(tape, multiply(tape, y, y));
  }

  double loss_at() {
    adapters->merge(Context(1));
    Tape tape(Context(1), TapeMode::kInference);
    return loss(tape, Activation::kGelu).value<double>()[0][0];
  }

  ParameterSet set;
  Linear layer;
  std::unique_ptr<LowRankAdapters> adapters;
  std::vector<double> inputs = random_doubles(kRows * kIn);

  static std::vector<double> random_doubles(index n) {
    Tensor values = Tensor::empty({n}, DType::kFloat64);
    initialise(values, Init::normal(1), Random(9, RandomUse::kInit, 0));
    return to_vector(values.vec<double>());
  }
};

TEST(LowRank, WeightsAreTheirSum) {
  Adapted one;
  const Tensor start = one.set.find("layer.weight")->value.to(DType::kFloat64);
  one.adapt();
  const Rows<const double> w = one.set.find("layer.weight")->value.rows<double>(),
                           w0 = start.rows<double>();
  const auto& parameters = one.adapters->parameters();
  const Rows<const double> a = parameters[0]->value.rows<double>(),
                           b = parameters[1]->value.rows<double>();
  for (index column = 0; column < kIn; ++column) {
    EXPECT_EQ(w[0][column], w0[0][column]);
    for (index row = 0; row < 3; ++row) {
      double change = 0;
      for (index r = 0; r < kRank; ++r) change += b[row][r] * a[r][column];
      EXPECT_NEAR(w[row + 1][column], w0[row + 1][column] + kScale * change, 1e-12);
    }
  }
}

TEST(LowRank, GradientsAreThoseOfDifferences) {
  Adapted one;
  one.adapt();
  Tape tape{Context(1)};
  tape.backward(one.loss(tape, Activation::kGelu));
  EXPECT_FALSE(one.set.find("layer.weight")->has_gradient);
  for (Parameter* const p : one.adapters->parameters()) {
    const std::vector<double> found = to_vector(p->finished_gradient().vec<double>());
    for (index n = 0; n < p->value.size(); ++n) {
      constexpr double kStep = 1e-5;
      double& value = p->value.data<double>()[n];
      const double was = value;
      value = was + kStep, ++p->version;
      const double above = one.loss_at();
      value = was - kStep, ++p->version;
      const double below = one.loss_at();
      value = was, ++p->version;
      EXPECT_NEAR(found[static_cast<std::size_t>(n)], (above - below) / (2 * kStep), 1e-6)
          << p->name << " " << n;
    }
  }
}

TEST(LowRank, StartsAsTheModel) {
  Adapted one(DType::kFloat32);
  const std::vector<float> start = to_vector(one.set.find("layer.weight")->value.vec<float>());
  LowRankAdapters adapters(one.set.parameters(),
                           std::vector{LowRankTarget{"x", one.set.find("layer.weight"), 0, kOut}},
                           LowRankOptions{});
  adapters.merge(Context(2));
  EXPECT_EQ(to_vector(one.set.find("layer.weight")->value.vec<float>()), start);
  EXPECT_EQ(adapters.parameters()[0]->name, "x.lora_A.weight");
  EXPECT_THAT(to_vector(adapters.parameters()[1]->value.vec<float>()), testing::Each(0));
  for (const Parameter* const p : one.set.parameters()) EXPECT_TRUE(p->frozen);
}

TEST(LowRank, RowsThatThereAreNot) {
  Adapted one;
  const std::vector targets = {LowRankTarget{"x", one.set.find("layer.weight"), 4, 3}};
  EXPECT_THROWS(LowRankAdapters(one.set.parameters(), targets, {}), kShape, "rows 4 to 7");
}

}  // namespace
}  // namespace fovea
