// SPDX-License-Identifier: Apache-2.0
#include "fovea/task/run_time_parts.h"

#include <algorithm>
#include <span>
#include <vector>

#include "fovea/base/check.h"
#include "fovea/base/clock.h"
#include "fovea/base/machine.h"
#include "fovea/base/random.h"
#include "fovea/kernel/adamw.h"
#include "fovea/simd/peak.h"
#include "fovea/train/optimizer.h"

namespace fovea {

namespace {

// Updates are timed only if an update should take at most kLongUpdate, and making the model at most
// kLongStart seconds.
constexpr double kLongUpdate = 0.1;
constexpr double kLongStart = 0.15;
// Timing ends with the update during which this many seconds have passed.
constexpr double kTrySeconds = 0.4;
// A training step of a model of width 384 reaches about this share of the peak of multiply-adds in
// registers (docs/benchmarks.md). Smaller models reach less, but those are timed.
constexpr double kShareOfPeak = 0.7;

// Seconds for one parameter, measured on more parameters than fit into the caches.
struct ParameterSeconds {
  double start;   // to draw its value and touch its memory for the first time
  double update;  // to read and write it in an update
};

ParameterSeconds parameter_seconds(const Context& context) {
  constexpr index kMostSampled = 1 << 21, kDrawn = 1 << 17;
  // Where memory is short, the sample takes a quarter of it.
  constexpr std::int64_t kBytes = 4 * sizeof(float);
  const index sample =
      std::clamp<index>(available_memory().bytes / (4 * kBytes), kDrawn, kMostSampled);
  // Besides the optimizer's step, the gradient is cleared and written, its norm is computed, and
  // the weight is packed (or read in place): about as many bytes again.
  constexpr double kPassesLikeAStep = 2;
  double begin = monotonic_seconds();
  std::vector<float> value(sample), gradient(sample), m(sample), v(sample);
  const double taken = monotonic_seconds() - begin;
  begin = monotonic_seconds();
  Random random(1, RandomUse::kInit);
  for (float& x : std::span(value).first(kDrawn)) x = static_cast<float>(random.normal());
  const double drawn = monotonic_seconds() - begin;
  const AdamWSlot<float> slot{.value = {value.data(), sample},
                              .gradient = {gradient.data(), sample},
                              .m = {m.data(), sample},
                              .v = {v.data(), sample}};
  begin = monotonic_seconds();
  adamw<float>(context, {&slot, 1}, {.options = {.lr = 0}});
  const double step = monotonic_seconds() - begin;
  return {.start = taken / static_cast<double>(sample) + drawn / kDrawn,
          .update = kPassesLikeAStep * step / static_cast<double>(sample)};
}

struct Tried {
  double seconds = 0;  // of an update
  index updates = 0;
};

// Runs updates as the trainer does. The first one, which allocates its memory, counts only if it
// took so long that no other follows.
Tried try_updates(const Context& context, Objective& objective, const TrainOptions& recipe) {
  Optimizer optimizer(objective.parameters());
  const double began = monotonic_seconds();
  double begin = began;
  for (index update = 0;; ++update) {
    objective.begin_update(update);
    for (index batch = 0; batch < recipe.accumulate; ++batch) {
      objective.forward(batch);
      objective.backward();
    }
    optimizer.gradient_norm(context);
    optimizer.step(context, {.options = {.lr = 0}, .step = update + 1});
    const double now = monotonic_seconds();
    const index counted = std::max<index>(update, 1);
    if (now - began > (update == 0 ? kTrySeconds / 2 : kTrySeconds)) {
      return {(now - begin) / static_cast<double>(counted), counted};
    }
    if (update == 0) begin = now;
  }
}

}  // namespace

index evaluations_to_come(const TrainOptions& recipe, index updates, index updates_per_epoch,
                          index done) {
  const index every = to_updates(parse_length(recipe.eval_every, "--eval-every"), updates_per_epoch,
                                 "--eval-every");
  return std::max<index>((updates + every - 1) / every - done / every, 0);
}

RunTime estimate_time(const Context& context, const TimedRun& run, const RunState& done) {
  const Length length = parse_length(run.recipe.stop_after, "--stop-after");
  if (length.unit == LengthUnit::kHours) {
    return {std::max(length.value * 3600 - done.seconds, 0.0), "as --stop-after says"};
  }
  const RunCost& cost = run.cost;
  const double updates = run.updates_to_come();
  const double peak = best_peak_gflops(context);
  const ParameterSeconds parameter = parameter_seconds(context);
  const auto parameters = static_cast<double>(cost.parameters);
  const double reckoned =
      cost.flops_per_update / (kShareOfPeak * 1e9 * peak) + parameters * parameter.update;
  if (!run.fits() || reckoned > kLongUpdate || parameters * parameter.start > kLongStart) {
    return {
        updates * reckoned,
        fmt::format("an estimate: FLOPs at {:.0f} % of the {:.0f} GFLOP/s of multiply-adds that "
                    "were measured, and {:.1f} ns a parameter; evaluations included, saves not",
                    100 * kShareOfPeak, peak, 1e9 * parameter.update)};
  }
  Tried tried;
  run.with_objective(
      [&](Objective& objective) { tried = try_updates(context, objective, run.recipe); });
  return {updates * tried.seconds,
          fmt::format("an estimate: {} updates were tried, {:.3g} ms each; evaluations included, "
                      "saves not",
                      tried.updates, 1e3 * tried.seconds)};
}

}  // namespace fovea
