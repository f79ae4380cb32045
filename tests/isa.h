// SPDX-License-Identifier: Apache-2.0
// Runs a test on every instruction set of the machine.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

#include "fovea/base/sanitizer.h"
#include "fovea/simd/isa.h"

namespace fovea {

/// Calls f() once with each available instruction set pinned; what was current is so again after.
/// ThreadSanitizer looks for races, which are the same on all of them, and takes minutes for each:
/// it sees the current one, and all of them where FOVEA_EVERY_ISA is set, as `make test-long` does.
template <class F>
void for_each_isa(F&& f) {
  struct Restore {
    Isa isa = current_isa();
    ~Restore() { pin_isa(isa); }
  } restore;
  for (const Isa isa : available_isas()) {
#if defined(FOVEA_THREAD_SANITIZER)
    if (isa != restore.isa && std::getenv("FOVEA_EVERY_ISA") == nullptr) continue;
#endif
    SCOPED_TRACE(std::string(isa_name(isa)));
    pin_isa(isa);
    f();
  }
}

}  // namespace fovea
