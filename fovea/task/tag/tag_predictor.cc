// SPDX-License-Identifier: Apache-2.0
#include "fovea/task/tag/tag_predictor.h"

#include <algorithm>
#include <cmath>

#include "fovea/base/check.h"
#include "fovea/base/machine.h"
#include "fovea/model/pass_plan.h"
#include "fovea/model/text_batch.h"
#include "fovea/task/tag/objective.h"

namespace fovea {

namespace {

constexpr index kSmallestTagBatch = 512;  // words
constexpr index kLettersOfWord = 16;      // few words have more

}  // namespace

TagPredictor::TagPredictor(const Context& context, const LoadedTagger& model, index batch_words)
    : context_(context), model_(model), batch_words_(batch_words), tapes_(context) {
  check(batch_words >= 1, "tags: {} words a batch; expected at least 1", batch_words);
  const TaggerConfig& config = model.model->config();
  const index longest = std::max(batch_words, model.settings.text.max_length);
  const WordLoad load{
      .tape = {.tokens = longest, .mode = TapeMode::kInference, .sequences = longest},
      .characters = kLettersOfWord * longest};
  require_memory("the tags", plan_passes_apart(context, config, load).bytes(),
                 "use fewer threads (--threads), or a machine with more memory");
}

void TagPredictor::read(std::span<const std::vector<std::string>> sentences) {
  read_ = {};
  pieces_.clear();
  for (std::size_t s = 0; s < sentences.size(); ++s) {
    const auto length = static_cast<index>(sentences[s].size());
    const std::vector<WordRange> pieces = pieces_of(length, model_.settings.text.max_length);
    for (const WordRange range : pieces) {
      pieces_.push_back({s, range});
      append(read_, model_.vocabulary,
             std::span(sentences[s])
                 .subspan(static_cast<std::size_t>(range.begin),
                          static_cast<std::size_t>(range.end - range.begin)));
    }
    ++sentences_;
    words_ += length;
    cut_ += pieces.size() > 1 ? 1 : 0;
  }
}

void TagPredictor::tag_batch(Tape& tape, std::span<const index> batch,
                             TagProbabilities probabilities, Results& results) const {
  TaggedBatch words;
  for (const index piece : batch) append(words, read_, piece);
  tape.reset(TapeMode::kInference);
  const TagScores scores = model_.model->scores(tape, view_of(words).rows);
  for (std::size_t column = 0; column < scores.logits.size(); ++column) {
    require_finite(scores.logits[column], "the score of a tag");
    hand_out(tape, words, scores, column, probabilities, results);
  }
}

void TagPredictor::hand_out(const Tape& tape, const TaggedBatch& batch, const TagScores& scores,
                            std::size_t column, TagProbabilities probabilities,
                            Results& results) const {
  const Tagger& model = *model_.model;
  std::vector<std::int32_t> tags;
  std::vector<double> all;
  try {
    tags = model.best_tags(tape.context(), scores, column);
    if (probabilities == TagProbabilities::kYes) {
      all = model.probabilities(tape.context(), scores, column);
    }
  } catch (const Error& error) {
    // Its tags may leave no path, or its transitions be no numbers.
    if (error.code() != ErrorCode::kOptionValue) throw;
    throw Error(ErrorCode::kModelDamaged, error.what(),
                "train the model again, or use an earlier checkpoint");
  }
  const index width = model.config().tags[column];
  for (std::size_t n = 0; n < batch.samples.size(); ++n) {
    const Piece& piece = pieces_[static_cast<std::size_t>(batch.samples[n])];
    TaggedByModel& result = results[piece.sentence][column];
    std::copy(tags.begin() + batch.offsets[n], tags.begin() + batch.offsets[n + 1],
              result.tags.begin() + piece.words.begin);
    if (all.empty()) continue;
    std::transform(all.begin() + width * batch.offsets[n],
                   all.begin() + width * batch.offsets[n + 1],
                   result.probabilities.begin() + width * piece.words.begin,
                   [](double p) { return static_cast<float>(p); });
  }
}

std::vector<std::vector<TaggedByModel>> TagPredictor::tag(
    std::span<const std::vector<std::string>> sentences, TagProbabilities probabilities) {
  read(sentences);
  const std::vector<index>& widths = model_.model->config().tags;
  Results results(sentences.size(), std::vector<TaggedByModel>(widths.size()));
  for (std::size_t s = 0; s < sentences.size(); ++s) {
    for (std::size_t column = 0; column < widths.size(); ++column) {
      results[s][column].tags.resize(sentences[s].size());
      if (probabilities == TagProbabilities::kNo) continue;
      results[s][column].probabilities.resize(static_cast<std::size_t>(widths[column]) *
                                              sentences[s].size());
    }
  }
  std::vector<index> lengths;
  for (index piece = 0; piece < read_.size(); ++piece) lengths.push_back(read_.length(piece));
  const BatchSizes sizes{.fewest = kSmallestTagBatch, .most = batch_words_};
  tapes_.for_each(LengthBatches(lengths, sizes, context_.threads()),
                  [&](Tape& tape, std::span<const index> batch) {
                    tag_batch(tape, batch, probabilities, results);
                  });
  return results;
}

}  // namespace fovea
