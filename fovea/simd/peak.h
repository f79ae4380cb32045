// SPDX-License-Identifier: Apache-2.0
// What the machine could do at best, measured: figures of speed are given as a share of it.
#pragma once

#include "fovea/base/context.h"
#include "fovea/simd/isa.h"

namespace fovea {

/// GFLOP/s (10^9 float32 multiplications and additions a second) of a loop of fused multiply-adds
/// on registers alone (a multiplication and an addition where the instruction set has no fused
/// one), run for `seconds` on all threads of `ctx` and the current instruction set. On a shared
/// machine it varies from moment to moment: time it just before and after what it judges, for about
/// as long (a longer run is more likely to be interrupted by others).
double fma_gflops(const Context& ctx, double seconds = 0.004);

/// The instruction set whose code a dispatched kernel really runs: current_isa(), if all is well.
Isa compiled_isa();

}  // namespace fovea
