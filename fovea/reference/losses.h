// SPDX-License-Identifier: Apache-2.0
// The losses as simple loops, as in kernels.h.
#pragma once

#include "fovea/kernel/binary_cross_entropy.h"
#include "fovea/kernel/cross_entropy.h"

namespace fovea::reference {

template <class T>
CrossEntropy cross_entropy(InRows<T> logits, const Targets& targets, double scale, Vec<T> losses,
                           Rows<T> dlogits);
template <class T>
double binary_cross_entropy(InRows<T> logits, const BinaryTargets<T>& targets, double scale,
                            Vec<T> losses, Rows<T> dlogits);
template <class T>
CrossEntropy linear_cross_entropy(const LinearCrossEntropy<T>& a);

}  // namespace fovea::reference
