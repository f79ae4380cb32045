// SPDX-License-Identifier: Apache-2.0
// Gated linear units (Dauphin, Fan, Auli, Grangier 2017, "Language modeling with gated
// convolutional networks", eq. 1).
#pragma once

#include "fovea/base/context.h"
#include "fovea/kernel/shapes.h"

namespace fovea {

/// y = a * sigmoid(b), for x = [a, b]: x [N, 2C], y [N, C].
template <class T>
void glu_forward(const Context& ctx, InRows<T> x, Rows<T> y);

/// da = dy sigmoid(b), db = dy a sigmoid'(b): dx [N, 2C], which may be x.
template <class T>
void glu_backward(const Context& ctx, InRows<T> x, InRows<T> dy, Rows<T> dx);

}  // namespace fovea
