// SPDX-License-Identifier: Apache-2.0
// Runs a test on every instruction set of the machine.
#pragma once

#include <gtest/gtest.h>

#include <string>

#include "fovea/simd/isa.h"

namespace fovea {

/// Calls f() once with each available instruction set pinned; what was current is so again after.
template <class F>
void for_each_isa(F&& f) {
  struct Restore {
    Isa isa = current_isa();
    ~Restore() { pin_isa(isa); }
  } restore;
  for (const Isa isa : available_isas()) {
    SCOPED_TRACE(std::string(isa_name(isa)));
    pin_isa(isa);
    f();
  }
}

}  // namespace fovea
