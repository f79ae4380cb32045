// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "fovea/base/types.h"

namespace fovea {

/// How often this program has asked the system for memory.
index allocations();

}  // namespace fovea
