// SPDX-License-Identifier: Apache-2.0
#include "fovea/model/classifier_memory.h"

#include <algorithm>

namespace fovea {

namespace {

constexpr double kFloat = sizeof(float);

// What a tape keeps for each text: the pooled row, with attention also its query and two sums; that
// of its n-grams, and both side by side; its dropout; logits, targets, and in training gradients of
// all these.
double text_columns(const ClassifierConfig& c, double width, TapeMode mode) {
  const bool trains = mode == TapeMode::kTrain, attends = c.pooling == PoolingKind::kAttention;
  constexpr double kRowNames = 5, kOffset = 1;
  const double all = width + static_cast<double>(c.ngram_width);
  double columns = width + 2 * static_cast<double>(logit_count(c));
  if (attends) columns += width;
  if (c.ngrams > 1) columns += static_cast<double>(c.ngram_width) + all + kOffset;
  if (!trains) return columns;
  columns += 2 * all + 3 * static_cast<double>(logit_count(c));
  if (c.ngrams > 1) columns += all;
  if (c.output_dropout > 0) columns += all + kRowNames;
  return columns + (attends ? 2 : 0);
}

// The rows of the n-grams: of each length nearly one for each token.
double ngram_columns(const ClassifierConfig& c) { return static_cast<double>(c.ngrams - 1); }

index features_of(const ClassifierConfig& c, const std::vector<SizedStage>& stages) {
  return last_width(c, stages) + c.ngram_width;
}

// The weight of the output reads a row for each text.
TapeLoad load_of_output(const TextLoad& load) {
  return {.tokens = load.texts, .mode = load.tape.mode, .precision = load.tape.precision};
}

}  // namespace

double activation_bytes(const ClassifierConfig& config, const TextLoad& load) {
  const ClassifierConfig c = resolve(config);
  const std::vector<SizedStage> stages = sized_stages(c);
  const TapeMode mode = load.tape.mode;
  double columns = encoder_columns(c, stages, load.tape) + ngram_columns(c);
  if (mode == TapeMode::kTrain) columns += encoder_gradient_columns(c, stages, load.tape);
  const auto width = static_cast<double>(last_width(c, stages));
  return kFloat * (static_cast<double>(load.tape.tokens) * columns +
                   static_cast<double>(load.texts) * text_columns(c, width, mode));
}

double packed_bytes(const ClassifierConfig& config, const TextLoad& load) {
  const ClassifierConfig c = resolve(config);
  const std::vector<SizedStage> stages = sized_stages(c);
  return encoder_packed_bytes(c, stages, load.tape) +
         packed_bytes(WeightShape{logit_count(c), features_of(c, stages)}, load_of_output(load));
}

double scratch_bytes(const Context& context, const ClassifierConfig& config, const TextLoad& load) {
  const ClassifierConfig c = resolve(config);
  const std::vector<SizedStage> stages = sized_stages(c);
  const EncoderScratch layers = encoder_scratch(c, stages, load.tape);
  // Attention as pooling: the gradient of the rows as keys, beside that of the rows as values.
  const bool keys = c.pooling == PoolingKind::kAttention && load.tape.mode == TapeMode::kTrain;
  const double pooling = keys ? kFloat * static_cast<double>(load.tape.tokens) *
                                    static_cast<double>(last_width(c, stages))
                              : 0;
  return context.threads() * (kThreadScratch + layers.of_thread) +
         std::max(layers.of_call, pooling);
}

}  // namespace fovea
