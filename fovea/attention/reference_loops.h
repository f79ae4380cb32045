// SPDX-License-Identifier: Apache-2.0
// The loops of the definition (reference.h), on a call that has been checked.
#pragma once

#include "fovea/attention/attention.h"
#include "fovea/attention/reference_score.h"

namespace fovea::detail {

/// `factors`: how the products read weights, gradients of scores, and rotated rows.
template <class T>
void reference_forward(const Attention<T>& attention, const AttentionInputs<T>& in,
                       const AttentionOutputs<T>& out, Factors factors);
template <class T>
void reference_backward(const Attention<T>& attention, const AttentionInputs<T>& in,
                        const AttentionSaved<T>& saved, const AttentionGradients<T>& gradients,
                        Factors factors);

}  // namespace fovea::detail
