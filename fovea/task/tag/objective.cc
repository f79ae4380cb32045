// SPDX-License-Identifier: Apache-2.0
#include "fovea/task/tag/objective.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "fovea/metrics/spans.h"
#include "fovea/model/text_batch.h"

namespace fovea {

namespace {

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

using TagIds = std::vector<std::int32_t>;  // of the words of a set

double span_f1(const TagIds& found, const TagIds& right, const TaggedWords& truth,
               const TagSet& tags) {
  std::vector<SentenceSpans> sentences;
  for (index i = 0; i < truth.size(); ++i) {
    const auto begin = static_cast<std::size_t>(truth.starts[static_cast<std::size_t>(i)]);
    const auto length = static_cast<std::size_t>(truth.length(i));
    const auto spans = [&](const TagIds& all) {
      return spans_of(parsed(tags, std::span(all).subspan(begin, length)), *tags.scheme());
    };
    sentences.push_back({.truth = spans(right), .predicted = spans(found)});
  }
  return span_report(sentences, tags.types().size() + 1).micro.f1;
}

// Counts right tags among the words of one column that have a tag.
Hits hits_of(const TagIds& found, const TagIds& truth) {
  Hits hits;
  for (std::size_t w = 0; w < truth.size(); ++w) {
    if (truth[w] != kNoTag) hits += {.right = found[w] == truth[w], .of = 1};
  }
  return hits;
}

double accuracy(const TagIds& found, const TagIds& truth) {
  index right = 0;
  for (std::size_t w = 0; w < found.size(); ++w) right += found[w] == truth[w];
  return static_cast<double>(right) / static_cast<double>(std::max<std::size_t>(found.size(), 1));
}

// The metrics of one column; returns the one that counts, if any does.
std::optional<double> add_metrics(const SetTags& found, const TaggedWords& truth,
                                  const TaggerText& text, std::size_t column,
                                  std::vector<MetricValue>& metrics) {
  const std::string of = text.tags.size() == 1 ? "" : "_" + text.columns[column];
  const TagSet& tags = text.tags[column];
  const double share = accuracy(found.tags[column], truth.tags[column]);
  metrics.push_back({"accuracy" + of, share});
  if (!tags.scheme()) {
    if (text.metric == TaggerMetric::kSpanF1) return std::nullopt;
    return share;
  }
  const double f1 = span_f1(found.tags[column], truth.tags[column], truth, tags);
  const std::string name = text.joint ? "tagged_word_f1" : text.segments ? "word_f1" : "span_f1";
  metrics.push_back({name + of, f1});
  return text.metric == TaggerMetric::kAccuracy ? share : f1;
}

}  // namespace

TaggedRows view_of(const TaggedBatch& batch) {
  std::vector<Vec<const std::int32_t>> tags;
  for (const std::vector<std::int32_t>& column : batch.tags) tags.push_back(column);
  return {.rows = {.words = batch.words,
                   .shapes = batch.shapes,
                   .characters = batch.characters,
                   .character_offsets = batch.character_offsets,
                   .offsets = batch.offsets,
                   .samples = batch.samples},
          .tags = std::move(tags)};
}

std::optional<SetTags> predicted_tags(Tape& tape, const Tagger& model, const TaggedEvaluation& set,
                                      const std::function<bool()>& interrupted) {
  const TaggedWords& all = set.words();
  SetTags found;
  found.tags.assign(all.tags.size(), TagIds(all.words.size()));
  for (index i = 0; i < set.size(); ++i) {
    if (interrupted && interrupted()) return std::nullopt;
    const TaggedBatch batch = set[i];
    tape.reset(TapeMode::kInference);
    const TaggedRows rows = view_of(batch);
    const TagScores scores = model.scores(tape, rows.rows);
    found.words += batch.lacks_tag() ? 0 : batch.tokens();
    if (!batch.lacks_tag()) {
      found.loss += double{model.loss_of(tape, scores, rows.tags).value<float>()[0][0]};
    } else if (!std::all_of(scores.logits.begin(), scores.logits.end(), is_finite)) {
      found.loss = std::numeric_limits<double>::quiet_NaN();
    }
    // A model that has diverged has no best path.
    if (!std::isfinite(found.loss)) return found;
    for (std::size_t c = 0; c < found.tags.size(); ++c) {
      const TagIds tags = model.best_tags(tape.context(), scores, c);
      for (std::size_t s = 0; s < batch.samples.size(); ++s) {
        std::copy(tags.begin() + batch.offsets[s], tags.begin() + batch.offsets[s + 1],
                  found.tags[c].begin() + all.starts[static_cast<std::size_t>(batch.samples[s])]);
      }
    }
  }
  return found;
}

Validation measure(const SetTags& found, const TaggedWords& truth, const TaggerText& text) {
  Validation validation{.loss = found.mean_loss()};
  double sum = 0;
  index counted = 0;
  for (std::size_t c = 0; c < text.tags.size(); ++c) {
    const auto score = add_metrics(found, truth, text, c, validation.metrics);
    if (!score) continue;
    sum += *score;
    ++counted;
  }
  validation.score = sum / static_cast<double>(std::max<index>(counted, 1));
  if (text.tags.size() > 1) validation.metrics.push_back({"mean", *validation.score});
  validation.score = score_with_tie(*validation.score, validation.loss);
  if (text.metric == TaggerMetric::kLoss) validation.score.reset();
  return validation;
}

TaggerObjective::TaggerObjective(const Context& context, const Tagger& model, TaggerText text)
    : ObjectiveOf(context, model, text.training, {text.accumulate, text.seed}),
      text_(std::move(text)) {}

Variable TaggerObjective::loss_of_batch(const TaggedBatch& batch) {
  const TaggedRows rows = view_of(batch);
  const TagScores scores = model_.scores(tape_, rows.rows, options_);
  const Variable loss = model_.loss_of(tape_, scores, rows.tags, options_);
  // A run that has diverged has no best path.
  if (!std::isfinite(loss.value<float>()[0][0])) return loss;
  for (std::size_t c = 0; c < batch.tags.size(); ++c) {
    hits_ += hits_of(model_.best_tags(tape_.context(), scores, c), batch.tags[c]);
  }
  return loss;
}

std::optional<Validation> TaggerObjective::measure_set(const TaggedEvaluation& set,
                                                       const std::function<bool()>& interrupted) {
  const auto found = predicted_tags(free_tape(), model_, set, interrupted);
  if (!found) return std::nullopt;
  return measure(*found, set.words(), text_);
}

}  // namespace fovea
