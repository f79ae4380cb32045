// SPDX-License-Identifier: Apache-2.0
#include "fovea/nn/linear.h"

namespace fovea {

Linear::Linear(const LinearOptions& options, const ParameterScope& scope) {
  check(options.in > 0 && options.out > 0, "linear: sizes must be positive; in is {}, out is {}",
        options.in, options.out);
  weight_ = &scope.add("weight", {options.out, options.in}, options.weight);
  if (options.bias == Biases::kLearned) {
    const bool uniform = options.bias_start == BiasStart::kUniform;
    const Init start = uniform ? linear_uniform_init(options.in) : Init::zeros();
    bias_ = &scope.add("bias", {options.out}, start, Decay::kNo);
  }
}

Variable Linear::forward(Tape& tape, Variable x, Activation f, ForReader reader) const {
  return linear(tape, x, tape.parameter(*weight_), parameter_or_none(tape, bias_), f, reader);
}

Variable Linear::forward(Tape& tape, Variable x, const LinearUse& use) const {
  return linear(tape, x, tape.parameter(*weight_), parameter_or_none(tape, bias_), use);
}

Variable Linear::without_bias(Tape& tape, Variable x) const {
  return linear(tape, x, tape.parameter(*weight_), {});
}

}  // namespace fovea
