// SPDX-License-Identifier: Apache-2.0
#include "fovea/nn/module.h"

#include <cmath>
#include <limits>

#include "fovea/base/check.h"

namespace fovea {

namespace {

template <class T>
void fill_from(Vec<T> values, const Init& init, Random random) {
  for (T& x : values) {
    switch (init.kind) {
      case Init::Kind::kConstant:
        x = static_cast<T>(init.a);
        break;
      case Init::Kind::kNormal:
        x = static_cast<T>(init.a + init.b * random.normal());
        break;
      case Init::Kind::kUniform:
        x = static_cast<T>(random.uniform(init.a, init.b));
        break;
    }
  }
}

}  // namespace

Init residual_init(index layers) {
  check(layers > 0, "residual_init: layers must be positive; got {}", layers);
  return Init::normal(kInitDeviation / std::sqrt(2.0 * static_cast<double>(layers)));
}

Init glorot_uniform_init(index inputs, index outputs) {
  check(inputs > 0 && outputs > 0, "glorot_uniform_init: sizes must be positive; got {} and {}",
        inputs, outputs);
  const double bound = std::sqrt(6 / (static_cast<double>(inputs) + static_cast<double>(outputs)));
  return Init::uniform(-bound, bound);
}

Init linear_uniform_init(index inputs) {
  check(inputs > 0, "linear_uniform_init: inputs must be positive; got {}", inputs);
  const double bound = 1 / std::sqrt(static_cast<double>(inputs));
  return Init::uniform(-bound, bound);
}

void initialise(Tensor& tensor, const Init& init, Random random) {
  if (tensor.dtype() == DType::kFloat64)
    fill_from(tensor.vec<double>(), init, random);
  else
    fill_from(tensor.vec<float>(), init, random);
}

Parameter& ParameterSet::add(std::string name, const Shape& shape, const Init& init, Decay decay) {
  if (find(name) != nullptr) {
    fail(
        ErrorCode::kUsage,
        Hint{
            "give each layer a scope of its own: scope[\"first\"], scope[\"second\"], or scope[0], "
            "scope[1]"},
        "parameters: two are called '{}'", name);
  }
  check(shape.size() <= std::numeric_limits<index>::max() - size_,
        "parameters: with '{}' {} there are more than can be counted", name, to_string(shape));
  auto parameter = std::make_unique<Parameter>();
  parameter->name = std::move(name);
  parameter->decay = decay;
  if (options_.memory != ParameterMemory::kShapesOnly) {
    parameter->value = Tensor::empty(shape, options_.dtype);
  }
  if (options_.memory == ParameterMemory::kAllocate) {
    const auto number = static_cast<std::uint64_t>(owned_.size());
    initialise(parameter->value, init, Random(options_.seed, RandomUse::kInit, number));
  }
  size_ += shape.size();
  pointers_.push_back(parameter.get());
  by_name_.emplace(parameter->name, parameter.get());
  owned_.push_back(std::move(parameter));
  return *owned_.back();
}

Parameter* ParameterSet::find(std::string_view name) const {
  const auto found = by_name_.find(name);
  return found == by_name_.end() ? nullptr : found->second;
}

ParameterScope ParameterScope::operator[](std::string_view name) const {
  return ParameterScope(*set_, prefix_ + std::string(name) + ".");
}

Parameter& ParameterScope::add(std::string_view name, const Shape& shape, const Init& init,
                               Decay decay) const {
  return set_->add(prefix_ + std::string(name), shape, init, decay);
}

}  // namespace fovea
