// SPDX-License-Identifier: Apache-2.0
// Named parameters of layers, in the order in which they were added, and their initial values.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "fovea/base/random.h"
#include "fovea/grad/tape.h"
#include "fovea/tensor/tensor.h"

namespace fovea {

/// The distribution of a parameter's initial values.
struct Init {
  enum class Kind { kConstant, kNormal, kUniform };

  Kind kind = Kind::kConstant;
  double a = 0;  ///< the constant, the mean, or the lower end
  double b = 0;  ///< the standard deviation, or the upper end

  static constexpr Init zeros() { return {}; }
  static constexpr Init ones() { return constant(1); }
  static constexpr Init constant(double value) { return {Kind::kConstant, value, 0}; }
  static constexpr Init normal(double deviation) { return {Kind::kNormal, 0, deviation}; }
  static constexpr Init uniform(double low, double high) { return {Kind::kUniform, low, high}; }
};

/// The initialisation of GPT-2 (Radford et al. 2019, section 2.3): every matrix and table from
/// normal(0, 0.02), biases zero, gains one.
inline constexpr double kInitDeviation = 0.02;
/// For the projections whose results are added to the residual: deviation 0.02 / sqrt(2 layers), so
/// that the variance of the sum of 2 x layers results does not grow with `layers`.
Init residual_init(index layers);
/// PyTorch's default for Linear: uniform in [-b, b], b = 1 / sqrt(inputs) (He et al. 2015 with a =
/// sqrt 5).
Init linear_uniform_init(index inputs);
/// Keras' default for Dense: uniform in [-b, b], b = sqrt(6 / (inputs + outputs)) (Glorot, Bengio
/// 2010, eq. 16).
Init glorot_uniform_init(index inputs, index outputs);

/// Fills a float32 or float64 tensor. Both types get the same numbers, up to rounding.
void initialise(Tensor& tensor, const Init& init, Random random);

// A layer is a plain object that holds pointers to its parameters; one ParameterSet owns them all.
//
//   ParameterSet set({.seed = 1});
//   Linear head({.in = 128, .out = 65}, ParameterScope(set)["head"]);  // head.weight, head.bias
//   Variable y = head.forward(tape, x);

/// kShapesOnly counts parameters without allocating their values; kUnwritten gives the values
/// memory, but no start, for a plan (base/profile.h).
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
