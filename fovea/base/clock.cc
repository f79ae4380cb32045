// SPDX-License-Identifier: Apache-2.0
#include "fovea/base/clock.h"

#include <chrono>

namespace fovea {

double monotonic_seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

}  // namespace fovea
