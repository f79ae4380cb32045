// SPDX-License-Identifier: Apache-2.0
// The learning rate over a run.
#pragma once

#include <string>

#include "fovea/train/options.h"
#include "fovea/train/run_state.h"

namespace fovea {

/// The learning rate of the update that follows `step` updates.
///
/// While step < warmup: lr (step + 1) / warmup. Then, with r in [0, 1] the share done of the run
/// after the warm-up (of the whole run, if it ends by hours):
///   cosine        min_lr + (lr - min_lr) (1 + cos(pi r)) / 2
///   linear        min_lr + (lr - min_lr) (1 - r)
///   inverse-sqrt  max(min_lr, lr sqrt(max(warmup, 1) / (step + 1)))   (Vaswani et al. 2017, 5.3)
///   constant      lr
///   wsd           lr, and in the last decay_share of the whole run, with q in [0, 1] the share of
///                 that part which is done: min_lr + (lr - min_lr) (1 - sqrt(q))
/// wsd means warm-up, stable, decay (Hu et al. 2024; the square root is from Haegele et al. 2024).
/// If a run is made longer before its decay begins, it goes on at the same learning rate.
double learning_rate(const TrainOptions& options, const Horizon& horizon, index step,
                     double seconds);

/// A note on a warm-up that takes more than half of a run of `updates`; else nothing.
std::string warmup_note(index warmup, index updates);

/// Describes how the learning rate changes when a run goes on with other options: "the schedule
/// changes: learning rate 0.0001 -> 0.0006 at update 2001"; "" if it does not. If it jumps because
/// the run was made longer, the text also lists options that continue from the learning rate that
/// was reached.
std::string schedule_change(const TrainOptions& before, const TrainOptions& now,
                            index updates_per_epoch, const RunState& state);

}  // namespace fovea
