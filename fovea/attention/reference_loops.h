// SPDX-License-Identifier: Apache-2.0
// The loops of the definition (reference.h), on a call that has been checked.
#pragma once

#include "fovea/attention/attention.h"

namespace fovea::detail {

/// What the products read: weights and gradients of scores as they are, or rounded to bfloat16.
enum class Factors { kExact, kBFloat16 };

template <class T>
void reference_forward(const Attention<T>& attention, const AttentionInputs<T>& in,
                       const AttentionOutputs<T>& out, Factors factors);
template <class T>
void reference_backward(const Attention<T>& attention, const AttentionInputs<T>& in,
                        const AttentionSaved<T>& saved, const AttentionGradients<T>& gradients,
                        Factors factors);

}  // namespace fovea::detail
