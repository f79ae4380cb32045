// SPDX-License-Identifier: Apache-2.0
#include "fovea/nn/norm.h"

namespace fovea {

NormLayer::NormLayer(const NormOptions& options, const ParameterScope& scope) : options_(options) {
  check(options.width > 0, "norm: the width must be positive; it is {}", options.width);
  gain_ = &scope.add("weight", {options.width}, Init::ones(), Decay::kNo);
  if (options.kind == NormKind::kLayer && options.bias == Biases::kLearned) {
    bias_ = &scope.add("bias", {options.width}, Init::zeros(), Decay::kNo);
  }
}

Variable NormLayer::forward(Tape& tape, Variable x) const {
  if (options_.kind == NormKind::kRms) {
    return rms_norm(tape, x, tape.parameter(*gain_), options_.epsilon);
  }
  const double epsilon = options_.variant == LayerNormVariant::kUnbiased ? 1e-6 : options_.epsilon;
  return layer_norm(tape, x, tape.parameter(*gain_), parameter_or_none(tape, bias_),
                    {options_.variant, epsilon});
}

}  // namespace fovea
