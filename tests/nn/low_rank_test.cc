// SPDX-License-Identifier: Apache-2.0
#include "fovea/nn/low_rank.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
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
FloatStep step(Context context, bool in_blocks, LowRankOptions options = {}, bool twice = true) {
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
  std::vector<LowRankTarget> targets = {{"one", set.find("second.weight"), 1, 3},
                                        {"two", set.find("first.weight"), 0, kWide},
                                        {"again", set.find("first.weight"), 2, 4}};
  if (!twice) targets.pop_back();
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

// The norms of the rows of V = W + scale B A that a change makes, in plain loops.
std::vector<double> norms_by_definition(const Parameter& weight, const LowRank& change) {
  const Rows<const double> w = weight.value.rows<double>(), a = change.a->value.rows<double>(),
                           b = change.b->value.rows<double>();
  std::vector<double> norms;
  for (index row = 0; row < b.rows; ++row) {
    double squares = 0;
    for (index i = 0; i < kIn; ++i) {
      double v = w[change.first + row][i];
      for (index r = 0; r < kRank; ++r) v += kScale * b[row][r] * a[r][i];
      squares += v * v;
    }
    norms.push_back(std::sqrt(squares));
  }
  return norms;
}

constexpr LowRankOptions kMagnitudes{.magnitudes = Magnitudes::kLearned};

TEST(Magnitudes, StartAsTheModel) {
  Adapted one;
  const double before = one.loss_at();
  const std::vector<LowRankTarget> targets = {{"x", one.set.find("layer.weight"), 1, 4}};
  LowRankAdapters adapters(one.set.parameters(), targets, kMagnitudes);
  ASSERT_EQ(adapters.parameters().size(), 3U);
  EXPECT_EQ(adapters.parameters()[2]->name, "x.lora_magnitude_vector");
  EXPECT_EQ(adapters.parameters()[2]->value.shape(), Shape{4});
  EXPECT_NEAR(one.loss_at(), before, 1e-12 * before);
  adapters.merge(Context(2));
  EXPECT_NEAR(one.loss_at(), before, 1e-12 * before);
}

TEST(Magnitudes, RowsHaveThemInPlaceOfTheirNorms) {
  for (const bool merges : {false, true}) {
    Adapted one;
    one.adapt(kMagnitudes);
    Parameter& weight = *one.set.find("layer.weight");
    const Rows<const double> w = weight.value.rows<double>();
    std::vector<std::vector<double>> rows;  // of the weight, by the definition
    for (index row = 0; row < kOut; ++row) rows.emplace_back(w[row], w[row] + kIn);
    for (const LowRank& change : weight.changes) {
      const std::vector<double> norms = norms_by_definition(weight, change);
      const Vec<const double> m = change.magnitudes->value.vec<double>();
      for (index row = 0; row < m.size; ++row) {
        for (index i = 0; i < kIn; ++i) {
          double& v =
              rows[static_cast<std::size_t>(change.first + row)][static_cast<std::size_t>(i)];
          for (index r = 0; r < kRank; ++r) {
            v += kScale * change.b->value.rows<double>()[row][r] *
                 change.a->value.rows<double>()[r][i];
          }
          v *= m[row] / norms[static_cast<std::size_t>(row)];
        }
      }
    }
    if (merges) one.adapters->merge(Context(1));
    Tape tape(Context(2), TapeMode::kInference);
    const Variable x = tape.input<double>({one.inputs.data(), kRows, kIn});
    const Rows<const double> y = one.layer.forward(tape, x).value<double>();
    for (index n = 0; n < kRows; ++n) {
      for (index row = 0; row < kOut; ++row) {
        double sum = one.set.find("layer.bias")->value.vec<double>()[row];
        for (index i = 0; i < kIn; ++i) {
          sum += x.value<double>()[n][i] *
                 rows[static_cast<std::size_t>(row)][static_cast<std::size_t>(i)];
        }
        EXPECT_NEAR(y[n][row], sum, 1e-12) << merges;
      }
    }
  }
}

// The norms count as constants: the differences are those of a layer with the norms of the start.
TEST(Magnitudes, GradientsWithTheNormHeld) {
  Adapted one;
  one.adapt({.dropout = 0.3, .magnitudes = Magnitudes::kLearned});
  initialise(one.set.find("layer.bias")->value, Init::normal(1), Random(4, RandomUse::kInit, 0));
  const Names names;
  ParameterSet inputs({.seed = 2, .dtype = DType::kFloat64});
  const std::vector<Parameter*> all = learned(one, inputs);
  const Parameter& weight = *one.set.find("layer.weight");
  std::vector<double> norms(kOut, 1);
  for (const LowRank& change : weight.changes) {
    const std::vector<double> found = norms_by_definition(weight, change);
    std::ranges::copy(found, norms.begin() + change.first);
  }
  // The same adapters without magnitudes.
  Adapted held;
  held.adapt({.dropout = 0.3});
  // Backward is where the values are as they began, differences are where one is not.
  const auto values_of_all = [&] {
    std::vector<std::vector<double>> values;
    for (const Parameter* const p : all) values.push_back(to_vector(p->value.vec<double>()));
    return values;
  };
  const auto start = values_of_all();
  const auto loss = [&](Tape& tape) {
    const Variable x = tape.parameter(*all.back());
    const LinearUse use{.activation = Activation::kGelu, .names = names.view()};
    if (values_of_all() == start) {
      const Variable y = one.layer.forward(tape, x, use);
      return sum(tape, multiply(tape, y, y));
    }
    for (std::size_t n = 0; n < held.adapters->parameters().size(); ++n) {
      const std::size_t part = n / 2;
      const LowRank& change = weight.changes[part];
      Parameter& to = *held.adapters->parameters()[n];
      to.value.copy_from((n % 2 == 0 ? change.a : change.b)->value);
      ++to.version;
    }
    Tensor factors = Tensor::empty({kOut, kOut}, DType::kFloat64);
    factors.fill_zero();
    for (index c = 0; c < kOut; ++c) factors.rows<double>()[c][c] = 1;
    for (const LowRank& change : weight.changes) {
      const Vec<const double> m = change.magnitudes->value.vec<double>();
      for (index c = 0; c < m.size; ++c) {
        const index at = change.first + c;
        factors.rows<double>()[at][at] = m[c] / norms[static_cast<std::size_t>(at)];
      }
    }
    const Variable u = linear(tape, x, tape.parameter(*held.set.find("layer.weight")), {},
                              LinearUse{.names = use.names});
    auto* const kept = tape.saved<double>(kOut * kOut);
    std::copy_n(factors.data<double>(), kOut * kOut, kept);
    const Variable y = linear(tape, u, tape.constant(Rows<const double>(kept, kOut, kOut)),
                              tape.parameter(*one.set.find("layer.bias")), Activation::kGelu);
    return sum(tape, multiply(tape, y, y));
  };
  const GradientReport report = check_gradients(Context(2), all, loss);
  EXPECT_LT(report.error, 1e-8) << report.where;
}

TEST(Magnitudes, WeightsMayStayAsTheyLie) {
  for (const Precision precision : {Precision::kFloat32, Precision::kBFloat16}) {
    const Context context = Context(2).with(precision);
    const FloatStep widened = step(context, false, kMagnitudes, false),
                    blocks = step(context, true, kMagnitudes, false);
    const float within = precision == Precision::kFloat32 ? 1e-5F : 0.05F;
    EXPECT_NEAR(blocks.loss[0], widened.loss[0], within);
    ASSERT_EQ(blocks.of_adapters.size(), 6U);
    for (std::size_t n = 0; n < blocks.of_adapters.size(); ++n) {
      EXPECT_THAT(blocks.of_adapters[n],
                  testing::Pointwise(testing::FloatNear(within), widened.of_adapters[n]));
    }
    for (const int threads : {1, 3}) {
      EXPECT_EQ(step(Context(threads).with(precision), true, kMagnitudes, false).of_adapters,
                blocks.of_adapters);
    }
  }
}

TEST(Magnitudes, StandAlone) {
  Adapted one;
  one.adapt(kMagnitudes);
  const std::vector targets = {LowRankTarget{"x", one.set.find("layer.weight"), 3, 3}};
  EXPECT_THROWS(LowRankAdapters(one.set.parameters(), targets, {}), kUsage, "do not add up");
  Adapted other;
  other.adapt();
  const std::vector theirs = {LowRankTarget{"x", other.set.find("layer.weight"), 3, 3}};
  EXPECT_THROWS(LowRankAdapters(other.set.parameters(), theirs, kMagnitudes), kUsage,
                "do not add up");
}

TEST(LowRank, RowsThatThereAreNot) {
  Adapted one;
  const std::vector targets = {LowRankTarget{"x", one.set.find("layer.weight"), 4, 3}};
  EXPECT_THROWS(LowRankAdapters(one.set.parameters(), targets, {}), kShape, "rows 4 to 7");
}

}  // namespace
}  // namespace fovea
