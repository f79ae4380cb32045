// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace fovea {

/// Seconds of a clock that never goes back; only differences mean something.
double monotonic_seconds();

}  // namespace fovea
