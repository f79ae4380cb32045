// SPDX-License-Identifier: Apache-2.0
#include "fovea/train/update_rule.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "fovea/base/check.h"
#include "fovea/kernel/adamw8.h"
#include "fovea/kernel/lion.h"
#include "fovea/kernel/muon.h"
#include "fovea/train/table_updates.h"

namespace fovea {

namespace {

using States = std::span<ParameterState* const>;

double decay_of(const Parameter& parameter) { return parameter.decay == Decay::kYes ? 1.0 : 0.0; }

Vec<const float> gradient_of(Parameter& parameter) {
  return parameter.finished_gradient().vec<float>();
}

enum class Expected { kFinite, kNotBelowZero };

// No update gives a moment that fails this check. A mean of squares may be infinite, as a square
// may overflow.
void require_moments(const ParameterState& state, std::size_t tensor, std::string_view suffix,
                     Expected expected) {
  for (const float x : state.tensors[tensor].vec<float>()) {
    if (expected == Expected::kFinite ? std::isfinite(x) : x >= 0) continue;
    fail(ErrorCode::kModelDamaged, "optimizer.safetensors: tensor '{}.{}' holds a value that {}",
         state.parameter->name, suffix,
         expected == Expected::kFinite ? "is not finite" : "is below 0 or no number");
  }
}

// ---- AdamW

std::vector<StateTensor> state_of_adamw(const Shape& shape) { return {{"m", shape}, {"v", shape}}; }

AdamWSlot<float> adamw_slot(const Context& context, ParameterState& state, const AdamWStep& step) {
  if (state.table) return state.table->begin(context, step);
  Parameter& p = *state.parameter;
  return {p.value.vec<float>(), gradient_of(p), state.tensors[0].vec<float>(),
          state.tensors[1].vec<float>(), decay_of(p)};
}

void update_by_adamw(const Context& context, States states, const AdamWStep& step) {
  std::vector<AdamWSlot<float>> slots;
  for (ParameterState* state : states) slots.push_back(adamw_slot(context, *state, step));
  adamw<float>(context, slots, step);
  for (ParameterState* state : states) {
    if (state->table) state->table->updated(step);
  }
}

void check_adamw(const ParameterState& state) {
  require_moments(state, 0, "m", Expected::kFinite);
  require_moments(state, 1, "v", Expected::kNotBelowZero);
}

constexpr UpdateRule kAdamWRule{.state_of = state_of_adamw,
                                .update = update_by_adamw,
                                .check = check_adamw,
                                .bytes_of_value = 2 * sizeof(float),
                                .by_rows = true};

// ---- AdamW with moments in 8 bits

std::vector<StateTensor> state_of_adamw8(const Shape& shape) {
  const Shape blocks{moment_blocks(shape.size())};
  return {{"m", shape, DType::kUInt8},
          {"m.scale", blocks},
          {"v", shape, DType::kUInt8},
          {"v.scale", blocks}};
}

void update_by_adamw8(const Context& context, States states, const AdamWStep& step) {
  std::vector<AdamW8Slot> slots;
  for (ParameterState* state : states) {
    Parameter& p = *state->parameter;
    const auto moments = [&](std::size_t first) -> Moments8 {
      return {state->tensors[first].vec<std::uint8_t>(), state->tensors[first + 1].vec<float>()};
    };
    slots.push_back(
        {p.value.vec<float>(), gradient_of(p), moments(0), moments(2), decay_of(p), state->number});
  }
  adamw8(context, slots, step);
}

void check_adamw8(const ParameterState& state) {
  for (const std::size_t scales : {std::size_t{1}, std::size_t{3}}) {
    const std::string_view suffix = scales == 1 ? "m.scale" : "v.scale";
    require_moments(state, scales, suffix, Expected::kFinite);
    require_moments(state, scales, suffix, Expected::kNotBelowZero);
  }
}

constexpr double kScaleBytes = 2 * sizeof(float) / static_cast<double>(kMomentBlock);
constexpr UpdateRule kAdamW8Rule{.state_of = state_of_adamw8,
                                 .update = update_by_adamw8,
                                 .check = check_adamw8,
                                 .bytes_of_value = 2 + kScaleBytes};

// ---- one moment: Lion, and Muon of a matrix

std::vector<StateTensor> state_of_one_moment(const Shape& shape) { return {{"m", shape}}; }

void check_one_moment(const ParameterState& state) {
  require_moments(state, 0, "m", Expected::kFinite);
}

void update_by_lion(const Context& context, States states, const AdamWStep& step) {
  std::vector<LionSlot<float>> slots;
  for (ParameterState* state : states) {
    Parameter& p = *state->parameter;
    slots.push_back(
        {p.value.vec<float>(), gradient_of(p), state->tensors[0].vec<float>(), decay_of(p)});
  }
  lion<float>(context, slots, step);
}

constexpr UpdateRule kLionRule{.state_of = state_of_one_moment,
                               .update = update_by_lion,
                               .check = check_one_moment,
                               .bytes_of_value = sizeof(float)};

void update_by_muon(const Context& context, States states, const AdamWStep& step) {
  for (ParameterState* state : states) {
    Parameter& p = *state->parameter;
    const MuonSlot<float> slot{p.value.rows<float>(), p.finished_gradient().rows<float>(),
                               state->tensors[0].rows<float>(), decay_of(p)};
    muon<float>(context, slot, step);
  }
}

constexpr UpdateRule kMuonRule{.state_of = state_of_one_moment,
                               .update = update_by_muon,
                               .check = check_one_moment,
                               .bytes_of_value = sizeof(float),
                               .scratch_bytes = muon_scratch_bytes};

// ---- the table

struct OptimizerRow {
  OptimizerKind kind;
  const UpdateRule *vector, *table, *matrix, *layer_matrix;

  const UpdateRule& of(ParameterKind parameter) const {
    const UpdateRule* const rules[kParameterKinds] = {vector, table, matrix, layer_matrix};
    return *rules[static_cast<std::size_t>(parameter)];
  }
};

constexpr OptimizerRow kOptimizers[] = {
    {OptimizerKind::kAdamW, &kAdamWRule, &kAdamWRule, &kAdamWRule, &kAdamWRule},
    {OptimizerKind::kAdamW8, &kAdamWRule, &kAdamWRule, &kAdamW8Rule, &kAdamW8Rule},
    {OptimizerKind::kLion, &kLionRule, &kLionRule, &kLionRule, &kLionRule},
    {OptimizerKind::kMuon, &kAdamWRule, &kAdamWRule, &kAdamWRule, &kMuonRule}};

constexpr ParameterKind kKinds[] = {ParameterKind::kVector, ParameterKind::kTable,
                                    ParameterKind::kMatrix, ParameterKind::kLayerMatrix};

}  // namespace

const UpdateRule& update_rule(OptimizerKind optimizer, ParameterKind kind) {
  const auto row = std::find_if(std::begin(kOptimizers), std::end(kOptimizers),
                                [&](const OptimizerRow& one) { return one.kind == optimizer; });
  check(row != std::end(kOptimizers), "optimizer: no row of the table for number {}",
        static_cast<int>(optimizer));
  return row->of(kind);
}

double state_bytes(OptimizerKind optimizer, const ParameterSizes& sizes) {
  double bytes = 0;
  for (const ParameterKind kind : kKinds) {
    bytes += update_rule(optimizer, kind).bytes_of_value * sizes.of(kind);
  }
  return bytes;
}

double update_bytes(OptimizerKind optimizer, const ParameterSizes& sizes) {
  const auto scratch = update_rule(optimizer, ParameterKind::kLayerMatrix).scratch_bytes;
  return scratch == nullptr ? 0 : scratch(sizes.rows, sizes.columns);
}

}  // namespace fovea
