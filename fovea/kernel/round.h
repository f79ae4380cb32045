// SPDX-License-Identifier: Apache-2.0
// Rows of float32 rounded to bfloat16, and back. All are [N,C], rows may be strided.
#pragma once

#include "fovea/base/bfloat16.h"
#include "fovea/base/context.h"
#include "fovea/kernel/shapes.h"

namespace fovea {

/// y = x, rounded as to_bfloat16() does. Throws Error(kShape) unless both have one shape.
void round_rows(const Context& ctx, Rows<const float> x, Rows<BFloat16> y);

/// y = x.
void widen_rows(const Context& ctx, Rows<const BFloat16> x, Rows<float> y);

/// y += x.
void accumulate(const Context& ctx, Rows<const BFloat16> x, Rows<float> y);

}  // namespace fovea
