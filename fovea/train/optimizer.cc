// SPDX-License-Identifier: Apache-2.0
#include "fovea/train/optimizer.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <string>
#include <utility>

#include "fovea/base/check.h"

namespace fovea {

namespace {

constexpr Hint kOtherModel{
    "the file does not belong to this model: restore the folder from a copy, or train the model "
    "again"};

// Whether a tensor may be stored with fewer bits than it has here.
enum class Stored { kWhole, kWholeOrRounded };

void take(Tensor& into, const Safetensors& from, const std::string& name, std::string_view where,
          Stored stored = Stored::kWhole) {
  const Tensor* tensor = from.find(name);
  if (tensor == nullptr) {
    fail(ErrorCode::kModelDamaged, kOtherModel, "{}: tensor '{}' is missing", where, name);
  }
  const bool rounded = stored == Stored::kWholeOrRounded && tensor->dtype() == DType::kBFloat16;
  if (tensor->shape() != into.shape() || (tensor->dtype() != into.dtype() && !rounded)) {
    const bool may_be_rounded = stored == Stored::kWholeOrRounded;
    fail(ErrorCode::kModelDamaged, kOtherModel, "{}: tensor '{}' must be {}{}; it is {}", where,
         name, into.describe(), may_be_rounded ? " or bfloat16" : "", tensor->describe());
  }
  into.copy_from(rounded ? tensor->to(into.dtype()) : *tensor);
}

// The slot for the norm of a gradient.
AdamWSlot<float> gradient_slot(const ParameterState& state) {
  if (state.table) return state.table->slot();
  Parameter& p = *state.parameter;
  return {.value = p.value.vec<float>(), .gradient = p.finished_gradient().vec<float>()};
}

constexpr std::string_view kStateName = "optimizer.safetensors";

}  // namespace

Optimizer::Optimizer(std::span<Parameter* const> parameters, OptimizerKind kind,
                     std::span<const double> rates) {
  check(rates.empty() || rates.size() == parameters.size(),
        "optimizer: {} factors of the learning rate for {} parameters", rates.size(),
        parameters.size());
  std::uint32_t number = 0;
  for (std::size_t n = 0; n < parameters.size(); ++n) {
    Parameter* const p = parameters[n];
    if (p->frozen) continue;
    const UpdateRule& rule = update_rule(kind, kind_of(*p));
    ParameterState state{.parameter = p, .number = number++};
    for (const StateTensor& one : rule.state_of(p->value.shape())) {
      state.tensors.emplace_back(one.shape, one.dtype);
    }
    if (!rule.by_rows) {
      p->row_use = RowUse::kDense;
    } else if (p->row_use == RowUse::kSparse) {
      state.table = std::make_shared<TableUpdates>(*p, state.tensors[0], state.tensors[1]);
    }
    ruled_.push_back({std::move(state), &rule, rates.empty() ? 1 : rates[n]});
  }
}

double Optimizer::gradient_norm(const Context& context) {
  slots_.clear();
  for (const Ruled& one : ruled_) slots_.push_back(gradient_slot(one.state));
  return global_norm<float>(context, slots_);
}

// Parameters of one rule and rate are updated together, so that threads share many small ones.
void Optimizer::step(const Context& context, const AdamWStep& step) {
  std::vector<const Ruled*> done;
  for (const Ruled& first : ruled_) {
    const auto goes_with_first = [&](const Ruled* one) { return one->goes_with(first); };
    if (std::ranges::any_of(done, goes_with_first)) continue;
    done.push_back(&first);
    std::vector<ParameterState*> states;
    for (Ruled& one : ruled_) {
      if (one.goes_with(first)) states.push_back(&one.state);
    }
    AdamWStep own = step;
    own.options.lr *= first.rate;
    first.rule->update(context, states, own);
  }
  for (const Ruled& one : ruled_) {
    ++one.state.parameter->version;
    one.state.parameter->clear_gradient();
  }
}

std::vector<NamedTensor> Optimizer::state() const {
  std::vector<NamedTensor> all;
  for (const auto& [state, rule, rate] : ruled_) {
    Parameter& p = *state.parameter;
    p.catch_up();
    const auto kept = rule->state_of(p.value.shape());
    for (std::size_t n = 0; n < kept.size(); ++n) {
      all.push_back({fmt::format("{}.{}", p.name, kept[n].suffix), state.tensors[n]});
    }
  }
  return all;
}

void Optimizer::restore(const Safetensors& stored) {
  for (auto& [state, rule, rate] : ruled_) {
    Parameter& p = *state.parameter;
    p.catch_up();
    const auto kept = rule->state_of(p.value.shape());
    for (std::size_t n = 0; n < kept.size(); ++n) {
      take(state.tensors[n], stored, fmt::format("{}.{}", p.name, kept[n].suffix), kStateName);
    }
    rule->check(state);
  }
}

std::vector<NamedTensor> parameter_tensors(std::span<Parameter* const> parameters) {
  std::vector<NamedTensor> tensors;
  for (Parameter* p : parameters) {
    p->catch_up();
    tensors.push_back({p->name, p->value});
  }
  return tensors;
}

std::string first_not_finite(std::span<const NamedTensor> weights) {
  for (const NamedTensor& named : weights) {
    for (const float x : named.tensor.vec<float>()) {
      if (!std::isfinite(x)) return named.name;
    }
  }
  return "";
}

void restore_parameters(std::span<Parameter* const> parameters, const Safetensors& tensors,
                        std::string_view where) {
  for (Parameter* p : parameters) {
    p->catch_up();
    take(p->value, tensors, p->name, where, Stored::kWholeOrRounded);
    ++p->version;
  }
  if (tensors.tensors.size() != parameters.size()) {
    fail(ErrorCode::kModelDamaged, kOtherModel, "{}: expected {} tensors, got {}", where,
         parameters.size(), tensors.tensors.size());
  }
}

}  // namespace fovea
