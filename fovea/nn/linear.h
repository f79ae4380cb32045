// SPDX-License-Identifier: Apache-2.0
// y = f(x W^T + b).
#pragma once

#include "fovea/grad/ops.h"
#include "fovea/nn/module.h"

namespace fovea {

struct LinearOptions {
  index in = 0;
  index out = 0;
  Biases bias = Biases::kLearned;
  Init weight = Init::normal(kInitDeviation);
  BiasStart bias_start = BiasStart::kZeros;
};

/// Parameters: weight [out, in], bias [out].
class Linear {
 public:
  Linear(const LinearOptions& options, const ParameterScope& scope);

  /// x [N, in] -> [N, out].
  Variable forward(Tape& tape, Variable x, Activation f = Activation::kNone,
                   ForReader reader = ForReader::kAny) const;
  Variable forward(Tape& tape, Variable x, const LinearUse& use) const;
  /// x W^T.
  Variable without_bias(Tape& tape, Variable x) const;

  Parameter& weight() const { return *weight_; }
  Parameter* bias() const { return bias_; }

 private:
  Parameter* weight_;
  Parameter* bias_ = nullptr;
};

}  // namespace fovea
