// SPDX-License-Identifier: Apache-2.0
#include "fovea/task/memory.h"

#include <algorithm>
#include <cmath>

#include "fovea/base/machine.h"
#include "fovea/model/language_model_memory.h"
#include "fovea/report/plot.h"
#include "fovea/train/history.h"

namespace fovea {

namespace {

// For code and tables of kernels that have not run yet, and for the rounding of the allocator.
constexpr double kProcessBytes = 6 << 20;
// Large buffers end inside a page of 2 MB, and the last block of an arena is not full.
constexpr double kRounding = 1.02;

double tape_bytes(const Context& context, const LanguageModelConfig& config, const TapeLoad& load) {
  return activation_bytes(config, load) + scratch_bytes(context, config, load);
}

// One tape serves updates and evaluations in turn, and so does the scratch memory; neither is ever
// the other. Packed forms that only evaluations need are kept
// for the next evaluation.
double passes_bytes(const Context& context, const LanguageModelRun& run) {
  const LanguageModelConfig& config = run.settings.model;
  const TapeLoad update{run.training->largest_batch(), TapeMode::kTrain,
                        run.settings.recipe.observe_every > 0};
  const double packed = packed_bytes(config, update);
  if (!run.validation) return tape_bytes(context, config, update) + packed;
  const TapeLoad evaluation{run.validation->largest_batch(), TapeMode::kInference};
  const auto larger_of = [&](auto&& bytes) { return std::max(bytes(update), bytes(evaluation)); };
  return larger_of([&](const TapeLoad& load) { return activation_bytes(config, load); }) +
         larger_of([&](const TapeLoad& load) { return scratch_bytes(context, config, load); }) +
         std::max(packed, packed_bytes(config, evaluation));
}

// Bytes of ids, targets and offsets of an update's batches.
double batch_bytes(const LanguageModelRun& run) {
  return 2 * sizeof(token) * static_cast<double>(run.settings.recipe.accumulate) *
         static_cast<double>(run.training->largest_batch());
}

// While a vector of records grows it exists twice; a curve has two points for each record.
double history_bytes(const LanguageModelRun& run) {
  constexpr double kRecord = 2 * (sizeof(UpdateRecord) + 4 * sizeof(double));
  const LanguageModelConfig& model = run.settings.model;
  // Three numbers of each head in nested vectors, each also a point of a curve, with one more for
  // the mean of each layer.
  const auto layers = static_cast<double>(model.layers), heads = static_cast<double>(model.heads);
  constexpr double kVector = sizeof(std::vector<double>) + 32;  // and what malloc adds
  const double numbers = kVector + layers * (kVector + heads * sizeof(double));
  const double record =
      2 * sizeof(AttentionRecord) + 3 * (numbers + layers * (heads + 1) * sizeof(PlotPoint));
  constexpr double kDrawnCurve = 8e3;  // most bytes of the text of a thin curve
  const double drawing = 3 * layers * heads * kDrawnCurve;
  const auto updates = static_cast<double>(cost_of(run).updates);
  const auto every = static_cast<double>(run.settings.recipe.observe_every);
  return kRecord * std::floor(updates / static_cast<double>(run.settings.recipe.log_every)) +
         (every > 0 ? record * std::floor(updates / every) + drawing : 0);
}

// The files of the vocabulary are held by the run and by the trainer, and a checkpoint has copies
// of both, which are copied once more while they are written.
double vocabulary_bytes(const LanguageModelRun& run) {
  constexpr double kCopies = 4, kFiles = 2, kCountDigits = 8;
  double bytes = 0;
  if (!run.tokenizer) return bytes;  // a run of random tokens
  for (const CountedWord& word : run.tokenizer->data().words) {
    bytes += kFiles * static_cast<double>(word.word.size()) + kCountDigits;
  }
  return kCopies * bytes;
}

}  // namespace

void require_token_memory(std::string_view text, const Tokenizer& tokenizer, index block) {
  // A line has a begin token and an end token. Each sequence has a slice and a place in the order.
  constexpr double kSequence = sizeof(Slice) + 2 * sizeof(index);
  const auto lines = static_cast<double>(std::count(text.begin(), text.end(), '\n') + 1);
  const double tokens = static_cast<double>(tokenizer.token_count(text)) + 2 * lines;
  require_memory("the tokens of the text",
                 sizeof(token) * tokens +
                     kSequence * (tokens / static_cast<double>(std::max<index>(block, 1)) + lines),
                 "use less text, or a machine with more memory");
}

// The parameters, and the table of positions if it is not learned.
double model_memory(const LanguageModelConfig& config) {
  const double table =
      config.position == PositionKind::kSinusoidal
          ? static_cast<double>(resolve(config).position_max) * static_cast<double>(config.width)
          : 0;
  return 4 * (static_cast<double>(parameter_count(config)) + table);
}

double training_memory(const Context& context, const LanguageModelRun& run,
                       index checkpoint_bytes) {
  const LanguageModelConfig& config = run.settings.model;
  const double held = static_cast<double>(resident_memory_bytes()) + kProcessBytes;
  const double values = 4 * static_cast<double>(parameter_count(config));
  const double model = model_memory(config) + 2 * values;  // plus two moments
  // The whole checkpoint is read into memory. Then the moments are copied from it, and the best
  // model of the run is checked, which takes its file and its values.
  const double resuming = checkpoint_bytes > 0 ? held + model + 4 * values : 0;
  // A checkpoint is made in memory: values and both moments.
  const double saving = 3 * values;
  const double gradients =
      gradient_bytes(config, run.settings.recipe.accumulate * run.training->largest_batch());
  const double running = held - static_cast<double>(checkpoint_bytes) + model + gradients +
                         kRounding * passes_bytes(context, run) + batch_bytes(run) +
                         history_bytes(run) + vocabulary_bytes(run) + saving;
  // Text and tokens existed together before this call, so the peak so far counts too. The system
  // counts pages in lots, hence kLots.
  constexpr double kLots = 1 << 20;
  return std::max({static_cast<double>(peak_memory_bytes()) + kLots, resuming, running});
}

double evaluation_memory(const Context& context, const LanguageModelConfig& config,
                         const EvaluationBatches& set) {
  const TapeLoad load{set.largest_batch(), TapeMode::kInference};
  return kProcessBytes +
         kRounding * (tape_bytes(context, config, load) + packed_bytes(config, load));
}

double generation_memory(const Context& context, const LanguageModelConfig& config, index prompt,
                         index max_tokens) {
  // When the window moves, the model reads the tokens that stay again, from position 0.
  const index read = std::min(prompt, config.block);
  const bool moves_on = max_tokens > config.block - read || prompt > read;
  const index seen = moves_on ? config.block : read + max_tokens;
  const TapeLoad load{moves_on ? seen : read, TapeMode::kInference};
  const double logits = 3 * 4 * static_cast<double>(config.vocabulary);
  return kProcessBytes + logits + cache_bytes(config, seen) +
         kRounding * (tape_bytes(context, config, load) + packed_bytes(config, load));
}

}  // namespace fovea
