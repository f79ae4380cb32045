// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace fovea {

/// Seconds of a clock that never goes back. Its zero is arbitrary: use differences only.
double monotonic_seconds();

}  // namespace fovea
