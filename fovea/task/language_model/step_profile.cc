// SPDX-License-Identifier: Apache-2.0
#include "fovea/task/language_model/step_profile.h"

#include <algorithm>
#include <atomic>
#include <memory>
#include <numeric>
#include <utility>

#include "fovea/base/clock.h"
#include "fovea/base/machine.h"
#include "fovea/base/memory.h"
#include "fovea/base/profile.h"
#include "fovea/base/random.h"
#include "fovea/kernel/elementwise.h"
#include "fovea/simd/isa.h"
#include "fovea/simd/peak.h"
#include "fovea/task/language_model/language_model.h"
#include "fovea/train/optimizer.h"

namespace fovea {

namespace {

// One batch of random tokens for every update: other tokens would take the same time.
class RandomBatches final : public TrainingBatches {
 public:
  RandomBatches(const LanguageModelConfig& model, index batch_size) {
    Random random(1, RandomUse::kTest);
    const index length = model.block + 1;  // the last token is only a target
    for (index n = 0; n < batch_size * length; ++n) {
      tokens_.stream.push_back(static_cast<token>(random.below(model.vocabulary)));
    }
    for (index s = 0; s < batch_size; ++s) {
      append(batch_, tokens_.stream, {s * length, model.block}, static_cast<std::uint64_t>(s));
    }
  }
  Batch batch(index, index) override { return batch_; }
  index updates_per_epoch() const override { return 1; }
  index largest_batch() const override { return batch_.tokens(); }
  const Sequences& sequences() const override { return tokens_; }

 private:
  Sequences tokens_;
  Batch batch_;
};

constexpr std::string_view kLessMemory =
    "choose a smaller --batch-size, --block, --width or --layers";

LanguageModelRun run_of(LanguageModelSettings settings) {
  settings.text.train = {"random tokens"};
  check_options(settings);
  settings.model = resolve(settings.model);
  // Stream, ids, targets, and a row of one activation: the rest is counted when there is a batch.
  const double of_token = 3.0 * sizeof(token) + 4 * static_cast<double>(settings.model.width);
  require_memory("bench step: the tokens of a batch",
                 of_token * static_cast<double>(settings.text.batch_size) *
                     static_cast<double>(settings.model.block),
                 kLessMemory);
  settings.recipe.accumulate = 1;
  LanguageModelRun run;
  run.training = std::make_unique<RandomBatches>(settings.model, settings.text.batch_size);
  run.settings = std::move(settings);
  return run;
}

// Seconds of each of `steps` updates, after some that touch new memory.
std::vector<double> train(const Context& ctx, const LanguageModel& model,
                          const LanguageModelRun& run, int steps, Profile* profile) {
  constexpr int kWarmup = 2;
  const TrainOptions& recipe = run.settings.recipe;
  const Context context = profile ? ctx.profiled(*profile) : ctx;
  LanguageModelObjective objective(context, model, run);
  Optimizer optimizer(objective.parameters(), recipe.optimizer);
  std::vector<double> seconds;
  for (int step = 0; step < kWarmup + steps; ++step) {
    if (profile && step == kWarmup) profile->clear();
    const double begin = monotonic_seconds();
    objective.begin_update(step);
    objective.forward(0);
    objective.backward();
    const double norm = optimizer.gradient_norm(context);
    optimizer.step(context, {.options = {.lr = recipe.lr,
                                         .beta1 = recipe.beta1,
                                         .beta2 = recipe.beta2,
                                         .weight_decay = recipe.weight_decay},
                             .step = step + 1,
                             .gradient_scale = clip_scale(norm, recipe.clip)});
    if (step >= kWarmup) seconds.push_back(monotonic_seconds() - begin);
  }
  return seconds;
}

// Gigabytes a second that y += x reads and writes: the best of some, as it is a bound. Not those of
// a copy, whose target may be read into the cache before it is written, which nothing tells. The
// memory has huge pages, as that of the tensors has.
double memory_gigabytes(const Context& ctx) {
  constexpr index kRows = 1 << 12, kColumns = 1 << 12;
  constexpr std::size_t kBytes = kRows * kColumns * sizeof(float);
  const AlignedBytes memory[] = {allocate_aligned(kBytes), allocate_aligned(kBytes)};
  const auto rows_of = [](const AlignedBytes& bytes) {
    return Rows<float>(reinterpret_cast<float*>(bytes.get()), kRows, kColumns);
  };
  const Rows<float> from = rows_of(memory[0]), to = rows_of(memory[1]);
  fill(ctx, 1, from);
  fill(ctx, 0, to);
  double least = 0;
  for (int n = 0; n < 5; ++n) {
    const double begin = monotonic_seconds();
    accumulate<float>(ctx, from, to);
    const double seconds = monotonic_seconds() - begin;
    least = n == 0 ? seconds : std::min(least, seconds);
  }
  return 3 * static_cast<double>(kBytes) / least / 1e9;
}

// Nanoseconds until another thread sees what one wrote: two answer each other. 0 if there is one
// thread, or a second one does not come within a second.
double core_to_core_nanoseconds(const Context& ctx) {
  constexpr int kAnswers = 20000;
  if (ctx.threads() < 2) return 0;
  alignas(64) std::atomic<int> said{0};
  double begin = 0, end = 0;
  const double last_moment = monotonic_seconds() + 1;
  ctx.for_each(2, [&](index own) {
    for (int n = static_cast<int>(own); n < kAnswers; n += 2) {
      for (index look = 1; said.load(std::memory_order_acquire) != n; ++look) {
        if (look % 100000 == 0 && monotonic_seconds() > last_moment) return;
      }
      if (n == 2) begin = monotonic_seconds();  // now both are there
      if (n == kAnswers - 2) end = monotonic_seconds();
      said.store(n + 1, std::memory_order_release);
    }
  });
  return end > begin ? (end - begin) * 1e9 / (kAnswers - 4) : 0;
}

StepPart part_of(const Profile::Part& from, const StepProfile& profile) {
  const double steps = static_cast<double>(profile.steps);
  StepPart part{.what = std::string(from.work.what),
                .calls = from.calls / profile.steps,
                .seconds = from.seconds / steps};
  for (const index size : from.work.shape) {
    if (size > 0) part.shape.push_back(size);
  }
  const double seconds = std::max(from.seconds, 1e-12);
  part.gflops = from.work.flops / seconds / 1e9;
  part.share = part.gflops / profile.peak_gflops;
  part.gigabytes = from.work.bytes / seconds / 1e9;
  part.bandwidth_share = part.gigabytes / profile.memory_gigabytes;
  return part;
}

}  // namespace

StepProfile profile_step(const Context& ctx, const LanguageModelSettings& settings, int steps) {
  const LanguageModelRun run = run_of(settings);
  require_memory("bench step: training this model", training_memory(ctx, run), kLessMemory);
  const LanguageModel model(run.settings.model, run.settings.recipe.seed);
  StepProfile result{.parameters = parameter_count(run.settings.model),
                     .tokens = run.training->largest_batch(),
                     .steps = steps,
                     .memory_gigabytes = memory_gigabytes(ctx),
                     .core_to_core_nanoseconds = core_to_core_nanoseconds(ctx)};
  const bool has_pairs = ctx.precision() == Precision::kBFloat16 && has_bfloat16_products();
  const double before = peak_gflops(ctx);
  result.step_seconds = median(train(ctx, model, run, steps, nullptr));
  Profile profile;
  const std::vector<double> profiled = train(ctx, model, run, steps, &profile);
  result.peak_gflops = (before + peak_gflops(ctx)) / 2;
  result.fma_gflops = has_pairs ? fma_gflops(ctx) : result.peak_gflops;
  result.profiled_seconds =
      std::accumulate(profiled.begin(), profiled.end(), 0.0) / static_cast<double>(steps);
  result.waiting_seconds = profile.waiting_seconds() / static_cast<double>(steps);
  result.other_seconds = result.profiled_seconds - result.waiting_seconds;
  for (const Profile::Part& from : profile.parts()) {
    const StepPart part = part_of(from, result);
    result.other_seconds -= part.seconds;
    result.gflops += part.gflops * part.seconds / result.step_seconds;
    result.parts.push_back(part);
  }
  result.share = result.gflops / result.peak_gflops;
  std::sort(result.parts.begin(), result.parts.end(),
            [](const StepPart& a, const StepPart& b) { return a.seconds > b.seconds; });
  return result;
}

}  // namespace fovea
