// SPDX-License-Identifier: Apache-2.0
#include "fovea/nn/low_rank.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include "fovea/grad/ops.h"
#include "fovea/kernel/dropout.h"
#include "fovea/nn/linear.h"
#include "fovea/reference/gradcheck.h"
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

  void adapt(LowRankOptions options = {}) {
    const std::vector<LowRankTarget> targets = {{"one", set.find("layer.weight"), 1, 3},
                                                {"two", set.find("layer.weight"), 4, 2}};
    options.rank = kRank;
    options.scale = kScale;
    options.seed = 5;
    adapters = std::make_unique<LowRankAdapters>(set.parameters(), targets, options);
    for (Parameter* const one : adapters->parameters()) {
      initialise(one->value, Init::normal(0.5),
                 Random(static_cast<std::uint64_t>(one->value.size()), RandomUse::kInit, 0));
      ++one->version;
    }
  }

  Variable loss(Tape& tape, Activation f = Activation::kNone) {
    const Variable x = tape.input<double>({inputs.data(), kRows, kIn});
    const Variable y = layer.forward(tape, x, f);
    return sum(tape, multiply(tape, y, y));
  }

  double loss_at() {
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

TEST(LowRank, MergedWeightsAreTheirSum) {
  Adapted one;
  const Tensor start = one.set.find("layer.weight")->value.to(DType::kFloat64);
  one.adapt();
  const double loss = one.loss_at();
  one.adapters->merge(Context(1));
  EXPECT_NEAR(one.loss_at(), loss, 1e-12 * std::abs(loss));
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

// The names of rows whose masks differ from each other.
struct Names {
  std::vector<SampleRow> rows;

  Names() {
    for (std::uint32_t n = 0; n < kRows; ++n) rows.push_back({n / 3, n % 3});
  }
  MaskNames view(std::uint64_t step = 1) const { return {{.seed = 7, .step = step}, rows}; }
};

// All that an adapted layer with inputs that are learned, too, learns.
std::vector<Parameter*> learned(const Adapted& one, ParameterSet& inputs) {
  Parameter& x = inputs.add("x", {kRows, kIn}, Init::normal(1), Decay::kNo);
  std::vector<Parameter*> all(one.adapters->parameters().begin(), one.adapters->parameters().end());
  all.push_back(&x);
  return all;
}

TEST(LowRank, DropsWhatAdaptersReadAndNothingElse) {
  constexpr double kP = 0.4;
  Adapted plain, dropped;
  plain.adapt();
  dropped.adapt({.dropout = kP});
  const Names names;
  ParameterSet inputs({.seed = 2, .dtype = DType::kFloat64});
  const std::vector<Parameter*> all = learned(dropped, inputs);
  Tape tape{Context(1)};
  const Variable x = tape.parameter(*all.back());
  const Rows<double> values = x.value<double>();
  const Rows<const double> found =
      dropped.layer.forward(tape, x, {.names = names.view()}).value<double>();
  const Parameter& weight = *dropped.set.find("layer.weight");
  const Rows<const double> w = weight.value.rows<double>();
  for (index part = 0; part < 2; ++part) {
    const LowRank& change = weight.changes[static_cast<std::size_t>(part)];
    std::vector<double> kept(kRows * kIn);
    const Rows<double> read(kept.data(), kRows, kIn);
    dropout_forward<double>(Context(1), {kP, {7, 1, change.mask}, names.rows}, values, read);
    const Rows<const double> a = change.a->value.rows<double>(), b = change.b->value.rows<double>();
    for (index n = 0; n < kRows; ++n) {
      for (index row = 0; row < b.rows; ++row) {
        double sum = 0;
        for (index i = 0; i < kIn; ++i) {
          sum += values[n][i] * w[change.first + row][i];
          for (index r = 0; r < kRank; ++r) sum += kScale * read[n][i] * a[r][i] * b[row][r];
        }
        EXPECT_NEAR(found[n][change.first + row], sum, 1e-12);
      }
    }
  }
  EXPECT_NE(weight.changes[0].mask, weight.changes[1].mask);
  EXPECT_EQ(dropped.loss_at(), plain.loss_at()) << "nothing is dropped where nothing is trained";
  EXPECT_THROWS(dropped.layer.forward(tape, x), kShape, "rows without names");
}

TEST(LowRank, GradientsWithDropout) {
  Adapted one;
  one.adapt({.dropout = 0.3});
  const Names names;
  ParameterSet inputs({.seed = 2, .dtype = DType::kFloat64});
  const std::vector<Parameter*> all = learned(one, inputs);
  const GradientReport report = check_gradients(Context(2), all, [&](Tape& tape) {
    const Variable y = one.layer.forward(tape, tape.parameter(*all.back()),
                                         {.activation = Activation::kGelu, .names = names.view()});
    return sum(tape, multiply(tape, y, y));
  });
  EXPECT_LT(report.error, 1e-8) << report.where;
}

TEST(LowRank, StartsAsTheModel) {
  Adapted one(DType::kFloat32);
  const std::vector<float> start = to_vector(one.set.find("layer.weight")->value.vec<float>());
  {
    const std::vector targets = {LowRankTarget{"x", one.set.find("layer.weight"), 0, kOut}};
    LowRankAdapters first(one.set.parameters(), targets, LowRankOptions{});
  }
  EXPECT_TRUE(one.set.find("layer.weight")->changes.empty());
  EXPECT_FALSE(one.set.find("layer.weight")->frozen);
  LowRankAdapters adapters(one.set.parameters(),
                           std::vector{LowRankTarget{"x", one.set.find("layer.weight"), 0, kOut}},
                           LowRankOptions{});
  adapters.merge(Context(2));
  EXPECT_EQ(to_vector(one.set.find("layer.weight")->value.vec<float>()), start);
  EXPECT_EQ(adapters.parameters()[0]->name, "x.lora_A.weight");
  EXPECT_THAT(to_vector(adapters.parameters()[1]->value.vec<float>()), testing::Each(0));
  for (const Parameter* const p : one.set.parameters()) EXPECT_TRUE(p->frozen);
}

// The upper halves of float32: blocks whose values any layer can have.
std::shared_ptr<const BlockMatrix> halves_of(const Tensor& weight) {
  const auto values = weight.vec<float>();
  std::vector<std::uint8_t> bytes;
  for (const float value : values) {
    const auto bits = std::bit_cast<std::uint32_t>(value) >> 16;
    bytes.push_back(static_cast<std::uint8_t>(bits & 255));
    bytes.push_back(static_cast<std::uint8_t>(bits >> 8));
  }
  auto blocks = std::make_shared<BlockMatrix>(weight.shape()[1]);
  blocks->append(BlockType::kBFloat16, weight.shape()[0], std::move(bytes));
  return blocks;
}

struct FloatStep {
  std::vector<float> loss;
  std::vector<std::vector<float>> of_adapters = {};
};

// A step of a network of two layers, the second of which has adapters, and of the loss of tokens.
FloatStep step(Context context, bool in_blocks, LowRankOptions options = {}) {
  constexpr index kN = 11, kWide = 12, kTokens = 17;
  ParameterSet set(ParameterSetOptions{.seed = 3});
  const Linear first({.in = kIn, .out = kWide}, ParameterScope(set)["first"]),
      second({.in = kWide, .out = kOut}, ParameterScope(set)["second"]);
  Parameter& table = ParameterScope(set).add("table", {kTokens, kOut}, Init::normal(1));
  for (Parameter* const one : set.parameters()) {
    if (one->value.shape().axes() != 2) continue;
    const auto blocks = halves_of(one->value);
    std::vector<std::int32_t> rows(static_cast<std::size_t>(blocks->rows()));
    std::iota(rows.begin(), rows.end(), 0);
    widen_rows(context, *blocks, {rows.data(), blocks->rows()}, one->value.rows<float>());
    if (!in_blocks) continue;
    one->blocks = blocks;
    for (float& value : one->value.vec<float>()) value = NAN;  // nobody may read it
  }
  const std::vector<LowRankTarget> targets = {{"one", set.find("second.weight"), 1, 3},
                                              {"two", set.find("first.weight"), 0, kWide},
                                              {"again", set.find("first.weight"), 2, 4}};
  options.rank = kRank;
  options.scale = kScale;
  options.seed = 5;
  LowRankAdapters adapters(set.parameters(), targets, options);
  for (Parameter* const one : adapters.parameters()) {
    initialise(one->value, Init::normal(0.5),
               Random(static_cast<std::uint64_t>(one->value.size()), RandomUse::kInit, 0));
  }
  Tensor inputs = Tensor::empty({kN, kIn});
  initialise(inputs, Init::normal(1), Random(9, RandomUse::kInit, 0));
  std::vector<std::int32_t> ids(kN);
  for (index n = 0; n < kN; ++n) ids[static_cast<std::size_t>(n)] = n % kTokens;
  Tape tape(context);
  const Variable x = tape.input<float>(inputs.rows<float>());
  const MaskNames names{{.seed = 3, .step = 2}, {}};
  const Variable hidden = first.forward(
      tape, x, {.activation = Activation::kSilu, .reader = ForReader::kProduct, .names = names});
  const Variable loss = linear_cross_entropy(tape, second.forward(tape, hidden, {.names = names}),
                                             tape.parameter(table), {}, {.ids = {ids.data(), kN}},
                                             {.scale = 1.0 / kN});
  tape.backward(loss);
  FloatStep result{.loss = to_vector(loss.vec<float>())};
  for (Parameter* const one : adapters.parameters()) {
    result.of_adapters.push_back(to_vector(one->finished_gradient().vec<float>()));
  }
  return result;
}

TEST(LowRank, WeightsMayStayAsTheyLie) {
  for (const Precision precision : {Precision::kFloat32, Precision::kBFloat16}) {
    const Context context = Context(2).with(precision);
    const FloatStep widened = step(context, false), blocks = step(context, true);
    const double within = precision == Precision::kFloat32 ? 1e-5 : 0.05;
    EXPECT_NEAR(blocks.loss[0], widened.loss[0], within);
    for (std::size_t n = 0; n < blocks.of_adapters.size(); ++n) {
      EXPECT_THAT(blocks.of_adapters[n],
                  testing::Pointwise(testing::FloatNear(static_cast<float>(within)),
                                     widened.of_adapters[n]));
    }
    EXPECT_EQ(step(Context(1).with(precision), true).of_adapters, blocks.of_adapters);
  }
}

TEST(LowRank, WeightsMayStayAsTheyLieWithDropout) {
  const LowRankOptions options{.dropout = 0.5};
  for (const Precision precision : {Precision::kFloat32, Precision::kBFloat16}) {
    const Context context = Context(2).with(precision);
    const FloatStep widened = step(context, false, options), blocks = step(context, true, options);
    const float within = precision == Precision::kFloat32 ? 1e-5F : 0.05F;
    for (std::size_t n = 0; n < blocks.of_adapters.size(); ++n) {
      EXPECT_THAT(blocks.of_adapters[n],
                  testing::Pointwise(testing::FloatNear(within), widened.of_adapters[n]));
    }
    EXPECT_EQ(step(Context(3).with(precision), true, options).of_adapters, blocks.of_adapters);
    EXPECT_NE(step(context, true).of_adapters, blocks.of_adapters);
  }
}

TEST(LowRank, RowsThatThereAreNot) {
  Adapted one;
  const std::vector targets = {LowRankTarget{"x", one.set.find("layer.weight"), 4, 3}};
  EXPECT_THROWS(LowRankAdapters(one.set.parameters(), targets, {}), kShape, "rows 4 to 7");
}

}  // namespace
}  // namespace fovea
