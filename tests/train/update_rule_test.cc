// SPDX-License-Identifier: Apache-2.0
// The optimizers, each on parameters of all kinds.
#include "fovea/train/update_rule.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "fovea/base/random.h"
#include "fovea/grad/ops.h"
#include "fovea/train/optimizer.h"
#include "tests/support/throws.h"
#include "tests/support/vectors.h"

namespace fovea {
namespace {

using testing::ElementsAre;

// A table of which an update reads few rows, a matrix of a layer, another, and a vector.
struct SmallModel {
  std::vector<std::unique_ptr<Parameter>> owned;
  std::vector<Parameter*> parameters;

  SmallModel() {
    add("embedding.weight", {50, 6}).row_use = RowUse::kSparse;
    add("blocks.0.ff.weight", {40, 30});
    add("output.weight", {7, 90});
    add("norm.gain", {30}).decay = Decay::kNo;
  }
  Parameter& add(const std::string& name, const Shape& shape) {
    Parameter& p = *owned.emplace_back(std::make_unique<Parameter>());
    Random random(3, RandomUse::kTest, owned.size());
    p.name = name;
    p.value = Tensor(shape);
    for (float& x : p.value.vec<float>()) x = static_cast<float>(0.3 * random.normal());
    parameters.push_back(&p);
    return p;
  }

  // The gradients of update number `step`, those of the table by rows.
  void draw_gradients(const Context& context, index step) {
    Tape tape(context);
    Random random(4, RandomUse::kTest, static_cast<std::uint64_t>(step));
    std::vector<std::int32_t> ids;
    for (int n = 0; n < 5; ++n) ids.push_back(static_cast<std::int32_t>(random.below(50)));
    const Variable rows = embedding(tape, {tape.table(*parameters[0]), ids});
    tape.backward(sum(tape, multiply(tape, rows, rows)), 0.1);
    for (std::size_t n = 1; n < parameters.size(); ++n) {
      for (float& g : parameters[n]->gradient_to_write().vec<float>()) {
        g = static_cast<float>(random.normal());
      }
    }
  }
};

AdamWStep step_number(index step) {
  return {.options = {.lr = 1e-2, .weight_decay = 0.1}, .step = step, .gradient_scale = 0.7};
}

void update(SmallModel& model, Optimizer& optimizer, const Context& context, index step) {
  model.draw_gradients(context, step);
  optimizer.step(context, step_number(step));
}

std::string bytes_of(const SmallModel& model) {
  return safetensors_bytes(parameter_tensors(model.parameters));
}

class EveryOptimizer : public testing::TestWithParam<OptimizerKind> {};

TEST_P(EveryOptimizer, HasTheSameBitsForAnyNumberOfThreads) {
  std::string values, state;
  for (const int threads : {1, 2, 3, 8}) {
    SmallModel model;
    Optimizer optimizer(model.parameters, GetParam());
    for (index step = 1; step <= 7; ++step) update(model, optimizer, Context(threads), step);
    const std::string now = bytes_of(model), kept = safetensors_bytes(optimizer.state());
    if (threads == 1) {
      values = now;
      state = kept;
    }
    EXPECT_EQ(now, values) << threads;
    EXPECT_EQ(kept, state) << threads;
  }
}

TEST_P(EveryOptimizer, GoesOnFromItsStateWithTheSameBits) {
  const Context context(2);
  SmallModel straight, first, second;
  Optimizer whole(straight.parameters, GetParam());
  for (index step = 1; step <= 9; ++step) update(straight, whole, context, step);

  Optimizer begun(first.parameters, GetParam());
  for (index step = 1; step <= 4; ++step) update(first, begun, context, step);
  const std::string state = safetensors_bytes(begun.state()), values = bytes_of(first);
  Optimizer resumed(second.parameters, GetParam());
  restore_parameters(second.parameters, parse_safetensors(values, "values"), "values");
  resumed.restore(parse_safetensors(state, "state"));
  for (index step = 5; step <= 9; ++step) update(second, resumed, context, step);
  EXPECT_EQ(bytes_of(second), bytes_of(straight));
  EXPECT_EQ(safetensors_bytes(resumed.state()), safetensors_bytes(whole.state()));
}

TEST_P(EveryOptimizer, KeepsWhatIsForeseen) {
  SmallModel model;
  const double foreseen = state_bytes(GetParam(), sizes_of(model.parameters));
  const Optimizer optimizer(model.parameters, GetParam());
  double bytes = 0;
  for (const NamedTensor& one : optimizer.state()) {
    bytes += static_cast<double>(one.tensor.byte_size());
  }
  // Of scales the last block of a parameter may hold few.
  EXPECT_NEAR(bytes, foreseen, 8.0 * static_cast<double>(model.parameters.size()));
}

TEST_P(EveryOptimizer, RefusesAStateThatNoUpdateGives) {
  SmallModel model;
  for (const NamedTensor& one : Optimizer(model.parameters, GetParam()).state()) {
    if (one.tensor.dtype() != DType::kFloat32) continue;
    Optimizer optimizer(model.parameters, GetParam());
    std::vector<NamedTensor> damaged = optimizer.state();
    for (NamedTensor& other : damaged) {
      if (other.name != one.name) continue;
      other.tensor = Tensor(one.tensor.shape());
      other.tensor.vec<float>()[0] = NAN;
    }
    const Safetensors stored = parse_safetensors(safetensors_bytes(damaged), "o");
    EXPECT_THROWS(optimizer.restore(stored), kModelDamaged, "'" + one.name + "' holds a value");
  }
}

// The least loss of |W - target|^2 is found, whatever the rule.
TEST_P(EveryOptimizer, FindsALeastLoss) {
  SmallModel model;
  Optimizer optimizer(model.parameters, GetParam());
  const auto loss_and_gradients = [&] {
    double loss = 0;
    Random target(6, RandomUse::kTest);
    for (std::size_t n = 1; n < model.parameters.size(); ++n) {
      const auto value = model.parameters[n]->value.vec<float>();
      const auto gradient = model.parameters[n]->gradient_to_write().vec<float>();
      for (index i = 0; i < value.size; ++i) {
        const float distance = value[i] - static_cast<float>(0.1 * target.normal());
        loss += distance * distance;
        gradient[i] = distance;
      }
    }
    return loss;
  };
  const double before = loss_and_gradients();
  for (index step = 1; step <= 200; ++step) {
    loss_and_gradients();
    AdamWStep options{.options = {.lr = 5e-2 * (1 - static_cast<double>(step) / 201)},
                      .step = step};
    optimizer.step(Context(2), options);
  }
  EXPECT_LT(loss_and_gradients(), 0.02 * before);
}

INSTANTIATE_TEST_SUITE_P(Kinds, EveryOptimizer, testing::ValuesIn([] {
                           std::vector<OptimizerKind> all;
                           for (const auto& one : kOptimizerNames) all.push_back(one.value);
                           return all;
                         }()),
                         [](const auto& one) { return std::string(to_string(one.param)); });

std::vector<std::string> names_of_state(OptimizerKind kind) {
  SmallModel model;
  std::vector<std::string> names;
  for (const NamedTensor& one : Optimizer(model.parameters, kind).state()) {
    names.push_back(one.name + " " + one.tensor.describe());
  }
  return names;
}

TEST(UpdateRules, KeepTheirOwnState) {
  EXPECT_THAT(
      names_of_state(OptimizerKind::kLion),
      ElementsAre("embedding.weight.m float32 [50, 6]", "blocks.0.ff.weight.m float32 [40, 30]",
                  "output.weight.m float32 [7, 90]", "norm.gain.m float32 [30]"));
}

TEST(UpdateRules, MatricesOfAdamW8HaveBytesAndTheRestFloats) {
  EXPECT_THAT(
      names_of_state(OptimizerKind::kAdamW8),
      ElementsAre("embedding.weight.m float32 [50, 6]", "embedding.weight.v float32 [50, 6]",
                  "blocks.0.ff.weight.m uint8 [40, 30]", "blocks.0.ff.weight.m.scale float32 [5]",
                  "blocks.0.ff.weight.v uint8 [40, 30]", "blocks.0.ff.weight.v.scale float32 [5]",
                  "output.weight.m uint8 [7, 90]", "output.weight.m.scale float32 [3]",
                  "output.weight.v uint8 [7, 90]", "output.weight.v.scale float32 [3]",
                  "norm.gain.m float32 [30]", "norm.gain.v float32 [30]"));
}

TEST(UpdateRules, MuonIsForTheMatricesOfLayers) {
  EXPECT_THAT(
      names_of_state(OptimizerKind::kMuon),
      ElementsAre("embedding.weight.m float32 [50, 6]", "embedding.weight.v float32 [50, 6]",
                  "blocks.0.ff.weight.m float32 [40, 30]", "output.weight.m float32 [7, 90]",
                  "output.weight.v float32 [7, 90]", "norm.gain.m float32 [30]",
                  "norm.gain.v float32 [30]"));
}

TEST(ParameterKind, IsSaidByUseDecayAndName) {
  SmallModel model;
  std::vector<ParameterKind> kinds;
  for (const Parameter* p : model.parameters) kinds.push_back(kind_of(*p));
  EXPECT_THAT(kinds, ElementsAre(ParameterKind::kTable, ParameterKind::kLayerMatrix,
                                 ParameterKind::kMatrix, ParameterKind::kVector));
  model.parameters[2]->frozen = true;
  const ParameterSizes sizes = sizes_of(model.parameters);
  EXPECT_EQ(sizes.of(ParameterKind::kTable), 300);
  EXPECT_EQ(sizes.of(ParameterKind::kMatrix), 0);
  EXPECT_EQ(sizes.of(ParameterKind::kVector), 30);
  EXPECT_EQ(sizes.rows, 40);
  EXPECT_EQ(sizes.columns, 30);
}

// Lion moves every row at each update, so the table has a whole gradient.
TEST(UpdateRules, LionMovesRowsThatAnUpdateDoesNotRead) {
  SmallModel model;
  Optimizer optimizer(model.parameters, OptimizerKind::kLion);
  EXPECT_EQ(model.parameters[0]->row_use, RowUse::kDense);
  update(model, optimizer, Context(1), 1);
  const std::vector<float> first = to_vector(model.parameters[0]->value.vec<float>());
  update(model, optimizer, Context(1), 2);
  const std::vector<float> second = to_vector(model.parameters[0]->value.vec<float>());
  for (std::size_t i = 0; i < first.size(); ++i) EXPECT_NE(first[i], second[i]) << i;
}

}  // namespace
}  // namespace fovea
