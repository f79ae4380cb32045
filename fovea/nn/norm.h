// SPDX-License-Identifier: Apache-2.0
// Normalisation of each row: layer norm in the variants of kernel/norm.h, or root mean square.
#pragma once

#include "fovea/grad/ops.h"
#include "fovea/nn/module.h"
#include "fovea/nn/options.h"

namespace fovea {

struct NormOptions {
  index width = 0;
  NormKind kind = NormKind::kLayer;
  LayerNormVariant variant = LayerNormVariant::kStandard;
  Biases bias = Biases::kLearned;  ///< layer norm only
  double epsilon = 1e-5;           ///< but for the unbiased variant
};

/// Parameters: weight [C] (the gain, starts at one) and bias [C] (starts at zero). The unbiased
/// variant has an epsilon of 1e-6, as in the annotated Transformer.
class NormLayer {
 public:
  NormLayer(const NormOptions& options, const ParameterScope& scope);

  Variable forward(Tape& tape, Variable x) const;

 private:
  NormOptions options_;
  Parameter* gain_;
  Parameter* bias_ = nullptr;
};

}  // namespace fovea
