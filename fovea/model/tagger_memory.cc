// SPDX-License-Identifier: Apache-2.0
#include "fovea/model/tagger_memory.h"

#include <algorithm>

#include "fovea/model/word_batch.h"
#include "fovea/model/word_features.h"

namespace fovea {

namespace {

constexpr double kFloat = sizeof(float);
constexpr double kGates = 7;  // an LSTM keeps gates, cell and states of both directions

// What a tape keeps for each word besides the encoder: its parts, all of them side by side, its
// scores, and the rows of its n-grams; in training gradients of these.
double word_columns(const TaggerConfig& c, double width, TapeMode mode) {
  const auto features = static_cast<double>(c.features), tags = static_cast<double>(tag_count(c));
  constexpr double kRowNames = 5, kOffsets = 2;
  double columns = 2 * features + tags + kRowNames + kOffsets;
  if (c.ngram_width > 0) columns += static_cast<double>(kContextNgrams) + 1;
  // The sums of its features, and these with the other scores.
  if (c.linear) columns += (c.features > 0 ? 2 * tags : 0) + 1;
  // The last states of both directions, before they stand side by side.
  if (c.character_reader == CharacterReader::kBilstm) {
    columns += static_cast<double>(c.character_features);
  }
  if (mode == TapeMode::kInference) return columns + 2 * tags;  // the probabilities, in double
  columns += 2 * features + 4 * tags + width;
  if (c.input_dropout > 0) columns += 2 * features;
  if (c.output_dropout > 0) columns += 2 * width;
  return columns;
}

// The rows of its features.
double feature_bytes(const TaggerConfig& c, const WordLoad& load) {
  const index characters = c.characters > 0 ? load.characters : 0;
  return c.linear ? kFloat * static_cast<double>(most_features(load.tape.tokens, characters)) : 0;
}

double character_columns(const TaggerConfig& c, TapeMode mode) {
  if (c.character_reader == CharacterReader::kNone) return 0;
  const auto read = static_cast<double>(c.character_width),
             made = static_cast<double>(c.character_features);
  const bool trains = mode == TapeMode::kTrain;
  constexpr double kRowNames = 5;
  const bool states = c.character_reader == CharacterReader::kBilstm;
  const double kept = read + made + kRowNames;
  if (!trains) return kept;
  // The rows between zeros, or the gates; and the gradients.
  return kept + (states ? kGates * made : 2 * read) + read + made;
}

std::vector<WeightShape> weights_of(const TaggerConfig& c, index width) {
  std::vector<WeightShape> weights = {{c.width, c.features}};
  for (const index tags : c.tags) weights.push_back({tags, width});
  if (c.character_reader == CharacterReader::kConvolution) {
    weights.push_back({c.character_features, kCharacterWindow * c.character_width});
  } else if (c.character_reader == CharacterReader::kBilstm) {
    weights.push_back({4 * c.character_features, c.character_width});
    weights.push_back({4 * c.character_features, c.character_features / 2});
  }
  return weights;
}

// Saved gradients of the transitions, of the first and of the last tag.
double transition_values(const TaggerConfig& c) {
  double values = 0;
  for (std::size_t column = 0; column < c.tags.size(); ++column) {
    const auto tags = static_cast<double>(c.tags[column]);
    if (head_of(c, column) == TagHead::kCrf) values += (tags + 2) * tags;
  }
  return values;
}

// Columns run one after another.
CrfScratch widest_crf(const TaggerConfig& c, const WordLoad& load) {
  const index longest = std::min(c.block, load.tape.tokens);
  CrfScratch most{0, 0};
  for (std::size_t column = 0; column < c.tags.size(); ++column) {
    if (head_of(c, column) != TagHead::kCrf) continue;
    const auto own =
        crf_scratch<float>(c.tags[column], longest, load.tape.mode == TapeMode::kTrain);
    most = {std::max(most.of_call, own.of_call), std::max(most.of_thread, own.of_thread)};
  }
  return most;
}

}  // namespace

double activation_bytes(const TaggerConfig& config, const WordLoad& load) {
  const TaggerConfig c = resolve(config);
  const std::vector<SizedStage> stages = sized_stages(c);
  const TapeMode mode = load.tape.mode;
  double columns = encoder_columns(c, stages, load.tape);
  if (mode == TapeMode::kTrain) columns += encoder_gradient_columns(c, stages, load.tape);
  columns += word_columns(c, static_cast<double>(last_width(c, stages)), mode);
  const double values = static_cast<double>(load.tape.tokens) * columns +
                        static_cast<double>(load.characters) * character_columns(c, mode) +
                        (mode == TapeMode::kTrain ? transition_values(c) : 0);
  return kFloat * values + feature_bytes(c, load);
}

double packed_bytes(const TaggerConfig& config, const WordLoad& load) {
  const TaggerConfig c = resolve(config);
  const std::vector<SizedStage> stages = sized_stages(c);
  double bytes = encoder_packed_bytes(c, stages, load.tape);
  for (const WeightShape& weight : weights_of(c, last_width(c, stages))) {
    bytes += packed_bytes(weight, load.tape);
  }
  return bytes;
}

double scratch_bytes(const Context& context, const TaggerConfig& config, const WordLoad& load) {
  const TaggerConfig c = resolve(config);
  const EncoderScratch layers = encoder_scratch(c, sized_stages(c), load.tape);
  // What is scaled by dropout, or added to a gradient that is there, of the widest rows.
  const double of_call =
      kFloat *
      std::max(static_cast<double>(load.tape.tokens) * static_cast<double>(c.features),
               static_cast<double>(load.characters) * static_cast<double>(c.character_width));
  const CrfScratch crf = widest_crf(c, load);
  // To tag, each thread has batches, and so calls, of its own.
  const double calls = load.tape.mode == TapeMode::kTrain ? 1 : context.threads();
  return context.threads() * (kThreadScratch + layers.of_thread + crf.of_thread) +
         calls * crf.of_call + std::max(layers.of_call, of_call);
}

}  // namespace fovea
