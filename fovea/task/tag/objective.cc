// SPDX-License-Identifier: Apache-2.0
#include "fovea/task/tag/objective.h"

#include <algorithm>

#include "fovea/metrics/spans.h"
#include "fovea/task/attention_record.h"

namespace fovea {

namespace {

template <class T>
Vec<const T> view(const std::vector<T>& values) {
  return {values.data(), static_cast<index>(values.size())};
}

// Words in a row whose tag the model does not know are a span of a type that it never predicts:
// one that is not found.
std::vector<ParsedTag> parsed(const TagSet& tags, std::span<const std::int32_t> numbers) {
  const auto unknown = static_cast<std::int32_t>(tags.types().size());
  std::vector<ParsedTag> all;
  for (std::size_t w = 0; w < numbers.size(); ++w) {
    const bool goes_on = w > 0 && numbers[w - 1] < 0;
    all.push_back(numbers[w] >= 0
                      ? tags.parsed(numbers[w])
                      : ParsedTag{goes_on ? TagPart::kInside : TagPart::kBegin, unknown});
  }
  return all;
}

double span_f1(const SetTags& found, const TaggedWords& truth, const TagSet& tags) {
  std::vector<SentenceSpans> sentences;
  for (index i = 0; i < truth.size(); ++i) {
    const auto begin = static_cast<std::size_t>(truth.starts[static_cast<std::size_t>(i)]);
    const auto length = static_cast<std::size_t>(truth.length(i));
    const auto spans = [&](const std::vector<std::int32_t>& all) {
      return spans_of(parsed(tags, std::span(all).subspan(begin, length)), *tags.scheme());
    };
    sentences.push_back({.truth = spans(truth.tags), .predicted = spans(found.tags)});
  }
  return span_report(sentences, tags.types().size() + 1).micro.f1;
}

Hits hits_of(std::span<const std::int32_t> found, std::span<const std::int32_t> tags) {
  Hits hits;
  for (std::size_t w = 0; w < tags.size(); ++w) {
    if (tags[w] != kNoTag) hits += {.right = found[w] == tags[w], .of = 1};
  }
  return hits;
}

double accuracy(const SetTags& found, const TaggedWords& truth) {
  index right = 0;
  for (std::size_t w = 0; w < found.tags.size(); ++w) right += found.tags[w] == truth.tags[w];
  return static_cast<double>(right) /
         static_cast<double>(std::max<std::size_t>(found.tags.size(), 1));
}

}  // namespace

TaggedRows view_of(const TaggedBatch& batch) {
  return {.rows = {.words = view(batch.words),
                   .shapes = view(batch.shapes),
                   .characters = view(batch.characters),
                   .character_offsets = view(batch.character_offsets),
                   .offsets = view(batch.offsets),
                   .samples = view(batch.samples)},
          .tags = view(batch.tags)};
}

std::optional<SetTags> tag_set(Tape& tape, const Tagger& model, const TaggedEvaluation& set,
                               const std::function<bool()>& interrupted) {
  const TaggedWords& all = set.words();
  SetTags found;
  found.tags.resize(all.words.size());
  for (index i = 0; i < set.size(); ++i) {
    if (interrupted && interrupted()) return std::nullopt;
    const TaggedBatch batch = set[i];
    tape.reset(TapeMode::kInference);
    const TaggedRows rows = view_of(batch);
    const TagScores scores = model.scores(tape, rows.rows);
    if (std::find(batch.tags.begin(), batch.tags.end(), kNoTag) == batch.tags.end()) {
      found.loss += double{model.loss_of(tape, scores, rows.tags).value<float>()[0][0]};
      found.words += batch.tokens();
    }
    const std::vector<std::int32_t> tags = model.best_tags(tape.context(), scores);
    for (std::size_t s = 0; s < batch.samples.size(); ++s) {
      std::copy(tags.begin() + batch.offsets[s], tags.begin() + batch.offsets[s + 1],
                found.tags.begin() + all.starts[static_cast<std::size_t>(batch.samples[s])]);
    }
  }
  return found;
}

Validation measure(const SetTags& found, const TaggedWords& truth, const TaggerText& text) {
  Validation validation{.loss = found.mean_loss(),
                        .metrics = {{"accuracy", accuracy(found, truth)}}};
  validation.score = validation.metrics[0].value;
  if (text.tags.scheme()) {
    const double f1 = span_f1(found, truth, text.tags);
    validation.metrics.push_back({text.segments ? "word_f1" : "span_f1", f1});
    if (text.metric != TaggerMetric::kAccuracy) validation.score = f1;
  }
  // Small sets have few different scores: of equal ones the lower loss is better.
  constexpr double kTie = 1e-9, kMostLoss = 1e3;
  *validation.score -= kTie * std::min(validation.loss, kMostLoss);
  if (text.metric == TaggerMetric::kLoss) validation.score.reset();
  return validation;
}

TaggerObjective::TaggerObjective(const Context& context, const Tagger& model, TaggerText text)
    : model_(model), text_(text), tape_(context) {}

index TaggerObjective::begin_update(index update) {
  batches_.clear();
  index words = 0;
  for (index number = 0; number < text_.accumulate; ++number) {
    batches_.push_back(text_.training.batch(update, number));
    words += batches_.back().tokens();
  }
  options_.scale = 1 / static_cast<double>(words);
  options_.dropout.seed = text_.seed;
  options_.dropout.step = static_cast<std::uint64_t>(update);
  seen_.assign(observes_ ? static_cast<std::size_t>(model_.attentions()) : 0, {});
  options_.attention = seen_;
  return words;
}

AttentionRecord TaggerObjective::observed_attention() { return record_of(seen_); }

double TaggerObjective::forward(index batch) {
  const TaggedBatch& chosen = batches_[static_cast<std::size_t>(batch)];
  tape_.reset(TapeMode::kTrain);
  loss_ = {};
  hits_ = {};
  if (chosen.size() == 0) return 0;
  const TaggedRows rows = view_of(chosen);
  const TagScores scores = model_.scores(tape_, rows.rows, options_);
  hits_ = hits_of(model_.best_tags(tape_.context(), scores), chosen.tags);
  loss_ = model_.loss_of(tape_, scores, rows.tags, options_);
  return double{loss_.value<float>()[0][0]};
}

void TaggerObjective::backward() {
  if (loss_.defined()) tape_.backward(loss_);
}

std::optional<Validation> TaggerObjective::measure_set(const TaggedEvaluation& set,
                                                       const std::function<bool()>& interrupted) {
  loss_ = {};
  const auto found = tag_set(tape_, model_, set, interrupted);
  if (!found) return std::nullopt;
  return measure(*found, set.words(), text_);
}

}  // namespace fovea
