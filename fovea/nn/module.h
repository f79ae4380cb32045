// SPDX-License-Identifier: Apache-2.0
// Named parameters of layers, in the order in which they were added.
//
// A layer is a plain object that holds pointers to its parameters; one ParameterSet owns them all.
//
//   ParameterSet set({.seed = 1});
//   Linear head({.in = 128, .out = 65}, ParameterScope(set)["head"]);  // head.weight, head.bias
//   Variable y = head.forward(tape, x);
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "fovea/grad/tape.h"
#include "fovea/nn/init.h"

namespace fovea {

/// kShapesOnly counts parameters without allocating their values; kUnwritten gives the values
/// memory, but no start, for a plan (base/plan.h).
enum class ParameterMemory { kAllocate, kShapesOnly, kUnwritten };

struct ParameterSetOptions {
  std::uint64_t seed = 1;
  DType dtype = DType::kFloat32;  ///< float64 for gradient checks
  ParameterMemory memory = ParameterMemory::kAllocate;
};

/// Owns parameters, whose addresses do not change. The initial values of a parameter depend only on
/// the seed and on its number in the order of adding, so the same model and seed give the same bits
/// on every machine.
class ParameterSet {
 public:
  explicit ParameterSet(const ParameterSetOptions& options) : options_(options) {}

  /// Throws kUsage if the name is taken, kShape if the number of parameters overflows.
  Parameter& add(std::string name, const Shape& shape, const Init& init, Decay decay);

  /// In the order in which they were added.
  std::span<Parameter* const> parameters() const { return pointers_; }
  /// The parameter of that name, or null.
  Parameter* find(std::string_view name) const;
  /// The number of learned values.
  index size() const { return size_; }
  const ParameterSetOptions& options() const { return options_; }

 private:
  ParameterSetOptions options_;
  std::vector<std::unique_ptr<Parameter>> owned_;
  std::vector<Parameter*> pointers_;
  std::unordered_map<std::string_view, Parameter*> by_name_;
  index size_ = 0;
};

/// A place in the hierarchy of names: scope["blocks"][0]["attention"].add("weight", ...).
class ParameterScope {
 public:
  explicit ParameterScope(ParameterSet& set, std::string prefix = {})
      : set_(&set), prefix_(std::move(prefix)) {}

  ParameterScope operator[](std::string_view name) const;
  ParameterScope operator[](index number) const { return (*this)[std::to_string(number)]; }

  Parameter& add(std::string_view name, const Shape& shape, const Init& init,
                 Decay decay = Decay::kYes) const;

  /// The type of the parameters, for a layer's constants.
  DType dtype() const { return set_->options().dtype; }
  bool shapes_only() const { return set_->options().memory == ParameterMemory::kShapesOnly; }

 private:
  ParameterSet* set_;
  std::string prefix_;  // empty, or ends with a dot
};

/// Whether layers have biases.
enum class Biases { kNone, kLearned };

/// How the biases of a linear layer start: kUniform is PyTorch's, as linear_uniform_init().
enum class BiasStart { kZeros, kUniform };

/// A parameter as a variable of the tape, or the undefined variable if there is none.
inline Variable parameter_or_none(Tape& tape, Parameter* parameter) {
  return parameter == nullptr ? Variable() : tape.parameter(*parameter);
}

/// The values of x as an input of the tape, at which the gradient ends (TapeMode::kInputs).
inline Variable as_input(Tape& tape, Variable x) {
  Variable input;
  with_type(x.dtype(),
            [&]<class T>(std::type_identity<T>) { input = tape.input<T>(x.value<T>()); });
  return input;
}

}  // namespace fovea
