// SPDX-License-Identifier: Apache-2.0
// A damaged model, or one whose training has diverged, may say numbers that are none.
#pragma once

#include <string_view>

#include "fovea/grad/ops.h"

namespace fovea {

/// Whether all numbers of x are finite.
bool is_finite(Variable x);

/// Throws kModelDamaged, "WHAT is not finite", if a number of x is none.
void require_finite(Variable x, std::string_view what);
/// Throws the same for a float32 parameter, which the error names.
void require_finite(const Parameter& parameter);

}  // namespace fovea
