// SPDX-License-Identifier: Apache-2.0
#include "fovea/train/optimizer.h"

#include <cmath>
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

[[noreturn]] void fail_moments(const std::string& name, std::string_view what) {
  fail(ErrorCode::kModelDamaged, "optimizer.safetensors: tensor '{}' holds a value that {}", name,
       what);
}

// No update gives moments that fail these checks. v may be infinite, as a square may overflow.
void require_moments(const Tensor& m, const Tensor& v, const std::string& name) {
  for (const float x : m.vec<float>()) {
    if (!std::isfinite(x)) fail_moments(name + ".m", "is not finite");
  }
  for (const float x : v.vec<float>()) {
    if (!(x >= 0)) fail_moments(name + ".v", "is below 0 or no number");
  }
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
    require_moments(m, v, p->name);
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
