// SPDX-License-Identifier: Apache-2.0
// Initial values of parameters.
#pragma once

#include "fovea/base/random.h"
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

}  // namespace fovea
