// SPDX-License-Identifier: Apache-2.0
#include "fovea/task/run_time.h"

#include "fovea/base/check.h"
#include "fovea/base/clock.h"
#include "fovea/base/machine.h"
#include "fovea/simd/peak.h"
#include "fovea/task/objective.h"
#include "fovea/train/optimizer.h"

namespace fovea {

namespace {

// An update that is reckoned to take longer is not tried out.
constexpr double kLongUpdate = 0.1;
constexpr double kTrySeconds = 0.3;
// Of the multiply-adds in registers, a training step of a model of width 384 reaches about this
// share (docs/benchmarks.md); smaller ones less, but those are tried out.
constexpr double kShareOfPeak = 0.7;

// Forward alone is a third of forward and backward.
double evaluation_updates(const LanguageModelRun& run, const RunCost& cost) {
  if (!run.validation) return 0;
  const TrainOptions& recipe = run.settings.recipe;
  const index every = to_updates(parse_length(recipe.eval_every, "--eval-every"),
                                 run.training->updates_per_epoch(), "--eval-every");
  const index evaluations = (cost.updates + every - 1) / every;
  const auto targets = static_cast<double>(run.validation->sequences().target_count());
  return static_cast<double>(evaluations) * targets /
         static_cast<double>(3 * cost.tokens_per_update);
}

struct Tried {
  double seconds = 0;  // of an update
  index updates = 0;
};

// As the trainer makes them; the first one, which takes its memory, is not counted.
Tried try_updates(const Context& context, const LanguageModelRun& run) {
  const TrainOptions& recipe = run.settings.recipe;
  const LanguageModel model(run.settings.model, recipe.seed);
  LanguageModelObjective objective(context, model,
                                   {.training = *run.training,
                                    .validation = nullptr,
                                    .accumulate = recipe.accumulate,
                                    .seed = recipe.seed});
  Optimizer optimizer(objective.parameters());
  double begin = monotonic_seconds();
  Tried tried;
  for (index update = 0;; ++update) {
    objective.begin_update(update);
    for (index batch = 0; batch < recipe.accumulate; ++batch) {
      objective.forward(batch);
      objective.backward();
    }
    optimizer.gradient_norm(context);
    optimizer.step(context, {.options = {.lr = 0}, .step = update + 1});
    const double seconds = monotonic_seconds() - begin;
    if (update == 0) {
      begin = monotonic_seconds();
      continue;
    }
    tried = {seconds / static_cast<double>(update), update};
    if (seconds > kTrySeconds) return tried;
  }
}

}  // namespace

RunTime estimate_run_time(const Context& context, const LanguageModelRun& run) {
  const Length length = parse_length(run.settings.recipe.stop_after, "--stop-after");
  if (length.unit == LengthUnit::kHours) return {length.value * 3600, "as --stop-after says"};
  const RunCost cost = cost_of(run);
  const double updates = static_cast<double>(cost.updates) + evaluation_updates(run, cost);
  const double peak = fma_gflops(context, 0.02);
  const double reckoned = cost.flops_per_update / (kShareOfPeak * 1e9 * peak);
  const bool fits = cost.memory_bytes <= static_cast<double>(available_memory().bytes);
  if (!fits || reckoned > kLongUpdate) {
    return {
        updates * reckoned,
        fmt::format("an estimate: FLOPs at {:.0f} % of the {:.0f} GFLOP/s of multiply-adds that "
                    "were measured; evaluations included, saves not",
                    100 * kShareOfPeak, peak)};
  }
  const Tried tried = try_updates(context, run);
  return {updates * tried.seconds,
          fmt::format("an estimate: {} updates were tried, {:.3g} ms each; evaluations included, "
                      "saves not",
                      tried.updates, 1e3 * tried.seconds)};
}

}  // namespace fovea
