// SPDX-License-Identifier: Apache-2.0
#include "fovea/task/run.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "fovea/base/check.h"
#include "fovea/base/clock.h"
#include "fovea/base/machine.h"
#include "fovea/base/random.h"
#include "fovea/base/version.h"
#include "fovea/kernel/adamw.h"
#include "fovea/report/plot.h"
#include "fovea/simd/isa.h"
#include "fovea/simd/peak.h"
#include "fovea/task/run_flow.h"
#include "fovea/tensor/checksum.h"
#include "fovea/train/history.h"
#include "fovea/train/optimizer.h"

namespace fovea {

RunIdentity identity_of_run(const std::string& model, std::string data, std::string tokenizer) {
  return {.model = xxh3_128(model),
          .data = std::move(data),
          .tokenizer = std::move(tokenizer),
          .isa = std::string(isa_name(current_isa())),
          .version = FOVEA_VERSION};
}

std::unique_ptr<Tokenizer> learn_tokenizer(std::string_view kind_name, std::string_view text,
                                           std::string_view name, const LearnOptions& options) {
  const TokenizerKind& kind = tokenizer_kind(kind_name);
  return kind.make(kind.learn(text, name, options));
}

void require_update(const UpdateRows& update, std::string_view row, std::string_view hint) {
  const auto& [batch, block, accumulate, rows] = update;
  constexpr index most = std::numeric_limits<std::int32_t>::max();
  if (block <= most / batch && accumulate <= most / (block * batch) &&
      block * batch * accumulate <= most / rows) {
    return;
  }
  throw Error(ErrorCode::kOptionValue,
              fmt::format("--batch-size: {} x {} (--max-length) x {} (--accumulate) are too many "
                          "{}s for one update",
                          batch, block, accumulate, row),
              std::string(hint));
}

// The values of the used rows, which grow by half, and the place of each row in them.
double gradient_bytes(OptimizerKind optimizer, index parameters,
                      std::span<const UsedTable> tables) {
  const bool by_rows = update_rule(optimizer, ParameterKind::kTable).by_rows;
  double whole = static_cast<double>(parameters), used = 0;
  for (const UsedTable& table : tables) {
    const auto V = static_cast<double>(table.rows), width = static_cast<double>(table.width);
    if (!by_rows && !table.frozen) continue;
    whole -= V * width;
    if (table.frozen) continue;
    const double U = std::min(V, static_cast<double>(table.used));
    const double held = std::min(V, 1.5 * U) + U;
    used += held * width + 2 * V;
  }
  return sizeof(float) * (whole + used);
}

ObservedHeads observed_heads(const std::vector<SizedStage>& stages) {
  ObservedHeads observed;
  for (const SizedStage& stage : stages) {
    for (const SizedLayer& layer : stage.branches) {
      if (layer.spec.heads == 0) continue;
      observed.layers += layer.spec.layers;
      observed.heads += layer.spec.layers * layer.spec.heads;
    }
  }
  return observed;
}

// While a vector of records grows it exists twice; a curve has two points for each record.
double record_bytes(const TrainOptions& recipe, index updates, ObservedHeads observed) {
  constexpr double kRecord = 2 * (sizeof(UpdateRecord) + 4 * sizeof(double));
  // Three numbers of each head in nested vectors, each also a point of a curve, with one more for
  // the mean of each layer.
  const auto layers = static_cast<double>(observed.layers),
             heads = static_cast<double>(observed.heads);
  constexpr double kVector = sizeof(std::vector<double>) + 32;  // and what malloc adds
  const double numbers = kVector + layers * kVector + heads * sizeof(double);
  const double record =
      2 * sizeof(AttentionRecord) + 3 * (numbers + (heads + layers) * sizeof(PlotPoint));
  constexpr double kDrawnCurve = 8e3;  // most bytes of the text of a thin curve
  const double drawing = 3 * heads * kDrawnCurve;
  const auto all = static_cast<double>(updates), every = static_cast<double>(recipe.observe_every);
  return kRecord * std::floor(all / static_cast<double>(recipe.log_every)) +
         (every > 0 ? record * std::floor(all / every) + drawing : 0);
}

// The files of the vocabulary are held by the run and by the trainer, and a checkpoint has copies
// of both, which are copied once more while they are written.
double vocabulary_bytes(const TokenizerData& tokenizer) {
  constexpr double kCopies = 4, kFiles = 2, kCountDigits = 8;
  double bytes = 0;
  for (const CountedWord& word : tokenizer.words) {
    bytes += kFiles * static_cast<double>(word.word.size()) + kCountDigits;
  }
  constexpr double kBase64 = 1.4;
  bytes += kBase64 * static_cast<double>(tokenizer.model.size());
  return kCopies * bytes;
}

double vocabulary_bytes(const Tokenizer* tokenizer) {
  return tokenizer == nullptr ? 0 : vocabulary_bytes(tokenizer->data());
}

double added_by_training(const TrainingBytes& bytes) {
  return bytes.model + bytes.state + bytes.gradients + kRounding * bytes.passes + bytes.batches +
         bytes.records + bytes.rounded;
}

double peak_of_training(const TrainingBytes& bytes, index checkpoint_bytes) {
  const double held = static_cast<double>(resident_memory_bytes()) + kProcessBytes;
  const double model = bytes.model + bytes.state;
  // The whole checkpoint is read into memory. Then the state is copied from it, and the best model
  // of the run is checked, which takes its file and its values.
  const double resuming = checkpoint_bytes > 0 ? held + model + bytes.state + 2 * bytes.values : 0;
  // A checkpoint is written from the values and the state themselves.
  const double running = held - static_cast<double>(checkpoint_bytes) + added_by_training(bytes);
  // Text and tokens existed together before this call, so the peak so far counts too. The system
  // counts pages in lots, hence kLots.
  constexpr double kLots = 1 << 20;
  return std::max({static_cast<double>(peak_memory_bytes()) + kLots, resuming, running});
}

LengthGroups::LengthGroups(const std::vector<index>& lengths) : order_(lengths.size()) {
  // A plan of their pass takes little time, whatever the data are.
  constexpr index kMostGroups = 256, kMostInGroups = 1 << 19;
  std::iota(order_.begin(), order_.end(), index{0});
  std::stable_sort(order_.begin(), order_.end(), [&](index a, index b) {
    return lengths[static_cast<std::size_t>(a)] < lengths[static_cast<std::size_t>(b)];
  });
  const auto count = static_cast<index>(lengths.size());
  const index tokens = std::accumulate(lengths.begin(), lengths.end(), index{0});
  const index mean = std::max<index>(tokens / std::max<index>(count, 1), 1);
  groups_ = std::clamp<index>(kMostInGroups / mean, 1, std::clamp<index>(count, 1, kMostGroups));
}

std::vector<std::int32_t> LengthGroups::means_of(const std::vector<index>& numbers) const {
  const auto count = static_cast<index>(order_.size());
  std::vector<std::int32_t> means(static_cast<std::size_t>(groups_), 1);
  for (index g = 0; count > 0 && g < groups_; ++g) {
    const index begin = g * count / groups_, end = (g + 1) * count / groups_;
    double sum = 0;
    for (index i = begin; i < end; ++i) {
      sum += static_cast<double>(
          numbers[static_cast<std::size_t>(order_[static_cast<std::size_t>(i)])]);
    }
    const double mean = std::round(sum / static_cast<double>(end - begin));
    means[static_cast<std::size_t>(g)] = std::max(static_cast<std::int32_t>(mean), 1);
  }
  return means;
}

TapeLoad LengthGroups::load_of(TapeLoad load, const std::vector<index>& lengths) const {
  load.lengths = means_of(lengths);
  load.tokens = std::accumulate(load.lengths.begin(), load.lengths.end(), index{0});
  return load;
}

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
  Optimizer optimizer(objective.parameters(), recipe.optimizer);
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
  const double updates = run.updates_to_come();
  const double peak = best_peak_gflops(context);
  const ParameterSeconds parameter = parameter_seconds(context);
  const auto parameters = static_cast<double>(run.parameters);
  const double reckoned =
      run.flops_of_update() / (kShareOfPeak * 1e9 * peak) + parameters * parameter.update;
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
