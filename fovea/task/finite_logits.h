// SPDX-License-Identifier: Apache-2.0
// A damaged model may say numbers that are none.
#pragma once

#include <string_view>

#include "fovea/grad/ops.h"

namespace fovea {

/// Throws kModelDamaged, "WHAT is not finite", if a number of x is none.
void require_finite(Variable x, std::string_view what);

}  // namespace fovea
