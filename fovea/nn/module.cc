// SPDX-License-Identifier: Apache-2.0
#include "fovea/nn/module.h"

#include <limits>

#include "fovea/base/check.h"

namespace fovea {

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
