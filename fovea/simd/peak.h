// SPDX-License-Identifier: Apache-2.0
// The measured peak speed of the machine: speeds of fovea are given as a share of it.
#pragma once

#include "fovea/base/context.h"
#include "fovea/simd/isa.h"

namespace fovea {

/// GFLOP/s (10^9 float32 multiplications and additions a second) of a loop of fused multiply-adds
/// on registers alone (a multiplication and an addition where the instruction set has no fused
/// one), run for `seconds` on all threads of `ctx` and the current instruction set. On a shared
/// machine it varies from moment to moment: run it just before and after the code that is compared
/// with it, for about as long (a longer run is more likely to be interrupted).
double fma_gflops(const Context& ctx, double seconds = 0.004);

/// GFLOP/s of products of bfloat16 with float32 sums. Only where has_bfloat16_products().
double bfloat16_gflops(const Context& ctx, double seconds = 0.004);

/// The peak of products of float32 values in the precision of ctx: one of the two.
double peak_gflops(const Context& ctx, double seconds = 0.004);

/// The largest of several measurements of peak_gflops: what the machine can do. In a single one a
/// thread may wake up late, or not at all.
double best_peak_gflops(const Context& ctx);

/// The instruction set whose code a dispatched kernel really runs. Tests compare it with
/// current_isa().
Isa compiled_isa();

}  // namespace fovea
