// SPDX-License-Identifier: Apache-2.0
#include "fovea/train/optimizer.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>

#include "fovea/base/check.h"

namespace fovea {

namespace {

void take(Tensor& into, const Safetensors& from, const std::string& name, std::string_view where) {
  const Tensor* tensor = from.find(name);
  if (tensor == nullptr) {
    fail(ErrorCode::kModelDamaged, "{}: tensor '{}' is missing", where, name);
  }
  if (tensor->shape() != into.shape() || tensor->dtype() != into.dtype()) {
    fail(ErrorCode::kModelDamaged, "{}: tensor '{}' must be {}; it is {}", where, name,
         into.describe(), tensor->describe());
  }
  into.copy_from(*tensor);
}

// No update has saved such moments: they would make the weights of the next one no numbers.
void require_moments(const Tensor& moments, float least, const std::string& name) {
  const Vec<const float> values = moments.vec<float>();
  if (std::all_of(values.begin(), values.end(),
                  [&](float x) { return std::isfinite(x) && x >= least; })) {
    return;
  }
  fail(ErrorCode::kModelDamaged, "optimizer.safetensors: tensor '{}' holds a value that {}", name,
       least < 0 ? "is not finite" : "is below 0 or not finite");
}

}  // namespace

Optimizer::Optimizer(std::span<Parameter* const> parameters) {
  for (Parameter* p : parameters) {
    moments_.push_back({p, Tensor(p->value.shape()), Tensor(p->value.shape())});
  }
}

std::vector<AdamWSlot<float>> Optimizer::slots() {
  std::vector<AdamWSlot<float>> slots;
  slots.reserve(moments_.size());
  for (auto& [p, m, v] : moments_) {
    slots.push_back({p->value.vec<float>(), p->finished_gradient().vec<float>(), m.vec<float>(),
                     v.vec<float>(), p->decay == Decay::kYes ? 1.0 : 0.0});
  }
  return slots;
}

double Optimizer::gradient_norm(const Context& context) {
  return global_norm<float>(context, slots());
}

void Optimizer::step(const Context& context, const AdamWStep& step) {
  adamw<float>(context, slots(), step);
  for (auto& moments : moments_) {
    ++moments.parameter->version;
    moments.parameter->clear_gradient();
  }
}

std::vector<NamedTensor> Optimizer::state() const {
  std::vector<NamedTensor> state;
  for (const auto& [p, m, v] : moments_) {
    state.push_back({p->name + ".m", m});
    state.push_back({p->name + ".v", v});
  }
  return state;
}

void Optimizer::restore(const Safetensors& state) {
  for (auto& [p, m, v] : moments_) {
    take(m, state, p->name + ".m", "optimizer.safetensors");
    take(v, state, p->name + ".v", "optimizer.safetensors");
    require_moments(m, std::numeric_limits<float>::lowest(), p->name + ".m");
    require_moments(v, 0, p->name + ".v");
  }
}

std::vector<NamedTensor> parameter_tensors(std::span<Parameter* const> parameters) {
  std::vector<NamedTensor> tensors;
  for (const Parameter* p : parameters) tensors.push_back({p->name, p->value});
  return tensors;
}

void restore_parameters(std::span<Parameter* const> parameters, const Safetensors& tensors,
                        std::string_view where) {
  for (Parameter* p : parameters) {
    take(p->value, tensors, p->name, where);
    ++p->version;
  }
  if (tensors.tensors.size() != parameters.size()) {
    fail(ErrorCode::kModelDamaged, "{}: expected {} tensors, got {}", where, parameters.size(),
         tensors.tensors.size());
  }
}

}  // namespace fovea
