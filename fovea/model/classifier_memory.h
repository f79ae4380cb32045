// SPDX-License-Identifier: Apache-2.0
// Predicts the memory that a classifier takes besides its parameters, before it is made.
#pragma once

#include "fovea/base/context.h"
#include "fovea/model/classifier_config.h"
#include "fovea/model/encoder_memory.h"

namespace fovea {

/// The batch for which memory is predicted.
struct TextLoad {
  index texts = 0;
  TapeLoad tape{};  ///< of their tokens
};

/// Bytes of the values that a tape keeps for a batch; in training also of the gradients that exist
/// at the same time. From its second step on, a tape takes within 4 % of this.
double activation_bytes(const ClassifierConfig& config, const TextLoad& load);

/// Bytes of the packed copies that products read instead of the weights.
double packed_bytes(const ClassifierConfig& config, const TextLoad& load);

/// Bytes of scratch memory of all threads, which kernels take during a call. Texts have `block`
/// tokens.
double scratch_bytes(const Context& context, const ClassifierConfig& config, const TextLoad& load);

}  // namespace fovea
