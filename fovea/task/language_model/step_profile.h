// SPDX-License-Identifier: Apache-2.0
// Where the time of a training step goes.
#pragma once

#include <string>
#include <vector>

#include "fovea/base/context.h"
#include "fovea/task/language_model/settings.h"

namespace fovea {

/// Work of one kind and shape, for one step. `seconds` leaves out the time in which the calling
/// thread waits for others, whose work counts: if threads do not end together, gflops, gigabytes
/// and shares are too high.
struct StepPart {
  std::string what;
  /// Products: M, N, K; attention: tokens, heads, head width; else rows, columns.
  std::vector<index> shape = {};
  index calls = 0;
  double seconds = 0;
  double gflops = 0;           ///< a second; 0 where moving data is the work
  double share = 0;            ///< of StepProfile::peak_gflops
  double gigabytes = 0;        ///< a second, each tensor counted once
  double bandwidth_share = 0;  ///< of memory_gigabytes; above 1 if caches hold the data
};

struct StepProfile {
  index parameters = 0, tokens = 0, steps = 0;
  double step_seconds = 0;              ///< median, not profiled
  double profiled_seconds = 0;          ///< mean; products do not run side by side here
  double waiting_seconds = 0;           ///< the calling thread waits for others
  double other_seconds = 0;             ///< in none of the parts
  double gflops = 0;                    ///< of products and attention, over step_seconds
  double share = 0;                     ///< GFLOP/s as a part of peak_gflops
  double fma_gflops = 0;                ///< of multiply-adds in registers
  double peak_gflops = 0;               ///< of the precision: fma_gflops unless it is bf16
  double memory_gigabytes = 0;          ///< read and written a second by y += x, 64 MiB each
  double core_to_core_nanoseconds = 0;  ///< until a thread sees what another wrote; 0: not known
  std::vector<StepPart> parts = {};     ///< the longest first
};

/// Trains a model of these settings for `steps` updates on random tokens, and then for as many
/// again with a profile. Throws kOptionValue, kShape, and kOutOfMemory before memory is taken.
StepProfile profile_step(const Context& ctx, const LanguageModelSettings& settings, int steps);

}  // namespace fovea
