// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>
#include <vector>

#include "fovea/base/check.h"
#include "fovea/metrics/spans.h"
#include "fovea/model/ngram_ids.h"
#include "fovea/model/pass_plan.h"
#include "fovea/model/tagger.h"
#include "fovea/model/text_batch.h"
#include "fovea/task/embeddings.h"
#include "fovea/task/run_flow.h"
#include "fovea/task/tag/run.h"

namespace fovea {

namespace {

// Ids of an update's batches; the tags of the validation set, and their spans while it is measured.
double batch_bytes(const TaggerRun& run) {
  const auto columns = static_cast<double>(run.tags.size());
  const double of_ids = (3 + columns) * sizeof(token), of_word = 32 + 32 * columns;
  const auto accumulate = static_cast<double>(run.settings.recipe.accumulate);
  const double ids =
      accumulate * (of_ids * static_cast<double>(run.training->largest_batch()) +
                    sizeof(token) * static_cast<double>(run.training->most_characters()));
  if (!run.validation) return ids;
  const index trained = run.trained ? run.trained->words().word_count() : 0;
  return ids +
         of_word * static_cast<double>(std::max(run.validation->words().word_count(), trained));
}

double update_gradients(const TaggerRun& run) {
  const TaggerConfig& c = run.settings.model;
  const index batches = run.settings.recipe.accumulate;
  const index words = batches * run.training->largest_batch();
  const index features = most_features(words, batches * run.training->most_characters());
  if (c.has_base()) {
    const bool is_frozen = freezes_embeddings(run.settings.from);
    const UsedTable table{c.vocabulary, c.width, batches * run.training->most_characters(),
                          is_frozen};
    const index of_table = is_frozen ? c.vocabulary * c.width : 0;
    return gradient_bytes(run.settings.recipe.optimizer, parameter_count(c) - run.frozen + of_table,
                          {&table, 1});
  }
  const UsedTable tables[] = {{c.vocabulary, c.word_width, words, c.freeze_embeddings},
                              {c.buckets, c.ngram_width, kContextNgrams * words},
                              {c.linear_buckets, tag_count(c), features}};
  return gradient_bytes(run.settings.recipe.optimizer, parameter_count(c), tables);
}

double words_of_update(const TaggerRun& run) {
  return static_cast<double>(run.training->words().word_count()) /
         static_cast<double>(run.training->updates_per_epoch());
}

// The tokens of a sentence as an encoder reads it.
index tokens_of_sentence(const TaggedWords& all, index sentence) {
  const auto character = [&](index i) {
    const index word = all.starts[static_cast<std::size_t>(i)];
    return all.character_starts[static_cast<std::size_t>(word)];
  };
  return character(sentence + 1) - character(sentence) + all.marks();
}

}  // namespace

template <>
struct TaskOf<TaggerRun> {
  using Objective = TaggerObjective;

  static std::vector<NamedFile> files(const TaggerRun& run) {
    if (run.vocabulary.reads_pieces()) {
      return first_files(config_text(run.settings, run.outputs), run.vocabulary.kept);
    }
    std::vector<NamedFile> files =
        first_files(config_text(run.settings, run.outputs), run.vocabulary.words->data());
    const auto add = [&](std::string_view name, const std::unique_ptr<Tokenizer>& tokenizer) {
      if (tokenizer) files.push_back({std::string(name), to_text(tokenizer->data())});
    };
    add(kCharactersName, run.vocabulary.characters);
    add(kKnownWordsName, run.vocabulary.known);
    return files;
  }

  static Tagger make(const TaggerRun& run) {
    Tagger model(run.settings.model, crf_rules(run.settings.model, run.tags),
                 run.settings.recipe.seed);
    if (run.from_base) load_encoder_base(run.settings.from.base, model.parameters());
    freeze_encoder(model.parameters(), run.settings.model, run.settings.from);
    if (run.vectors) start_with_vectors(model.parameters(), "words.tokens", *run.vectors);
    return model;
  }

  static index tokens(const TaggerRun& run) { return run.training->largest_batch(); }

  static WordLoad load(const auto& set, TapeMode mode, const TaggerRun& run) {
    WordLoad load{.tape = batch_load(run, mode), .characters = set.most_characters()};
    load.tape.tokens = set.largest_batch();
    load.tape.sequences = run.settings.text.batch_size;
    return load;
  }

  static PassCost plan(const Context& context, const TaggerRun& run, const WordLoad& load) {
    return plan_pass(context, run.settings.model, load, adapters_for_plan<Tagger>(run));
  }

  static OwnBytes bytes(const Context&, const TaggerRun& run) {
    return with_adapters(run, {.gradients = update_gradients(run),
                               .batches = batch_bytes(run),
                               .vocabulary = vocabulary_bytes(run.vocabulary.words.get()) +
                                             vocabulary_bytes(run.vocabulary.characters.get()) +
                                             vocabulary_bytes(run.vocabulary.kept),
                               .frozen = run.frozen});
  }

  static RowCounts rows(const TaggerRun& run) {
    index words = 0;
    for (const auto* set : {&run.validation, &run.trained}) {
      if (*set) words += (*set)->words().word_count();
    }
    return {.of_update = words_of_update(run), .evaluated = static_cast<double>(words)};
  }

  static double flops(const Context& context, const TaggerRun& run) {
    const TaggedWords& all = run.training->words();
    const bool by_subwords = run.vocabulary.reads_pieces();
    std::vector<index> lengths;
    for (index i = 0; i < all.size(); ++i) {
      lengths.push_back(by_subwords ? tokens_of_sentence(all, i) : all.length(i));
    }
    WordLoad load = TaskOf::load(*run.training, TapeMode::kTrain, run);
    load.tape = LengthGroups(lengths).load_of(load.tape, lengths);
    if (by_subwords) {
      load.characters = load.tape.tokens;
      const auto all_of_epoch =
          static_cast<double>(std::accumulate(lengths.begin(), lengths.end(), index{0}));
      return plan(context, run, load).flops * all_of_epoch /
             static_cast<double>(run.training->updates_per_epoch() * load.characters);
    }
    const auto words = static_cast<double>(load.tape.tokens);
    load.characters = static_cast<index>(words * static_cast<double>(all.characters.size()) /
                                         static_cast<double>(std::max<index>(all.word_count(), 1)));
    return plan(context, run, load).flops * words_of_update(run) / words;
  }
};

void keep_found(TaggerTextOptions& given, const TaggerTextOptions& began) {
  std::vector<SchemeChoice>& is = given.scheme;
  const std::vector<SchemeChoice>& was = began.scheme;
  if (is.size() == 1) is.resize(was.size(), is[0]);
  for (std::size_t c = 0; c < std::min(is.size(), was.size()); ++c) {
    if (is[c] == SchemeChoice::kAuto) is[c] = was[c];
  }
}

void keep_found(TaggerSettings& given, const TaggerSettings& began) {
  keep_found(given.text, began.text);
  given.model.vocabulary = began.model.vocabulary;
  given.model.characters = began.model.characters;
  given.model.tags = began.model.tags;
  given.model.block = began.model.block;
}

TrainResult train_tagger(const Context& context, const TaggerRun& run,
                         const std::filesystem::path& folder, StartAt start,
                         TrainingObserver& observer) {
  return RunTraining(context, run, folder, std::move(start)).train(run.settings.recipe, observer);
}

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
                                  const TaggerRun& run, std::size_t column,
                                  std::vector<MetricValue>& metrics) {
  const TaggerTextOptions& text = run.settings.text;
  const std::string of = run.tags.size() == 1 ? "" : "_" + column_names(text)[column];
  const TagSet& tags = run.tags[column];
  const double share = accuracy(found.tags[column], truth.tags[column]);
  metrics.push_back({"accuracy" + of, share});
  if (!tags.scheme()) {
    if (text.metric == TaggerMetric::kSpanF1) return std::nullopt;
    return share;
  }
  const double f1 = span_f1(found.tags[column], truth.tags[column], truth, tags);
  const std::string name = text.joint                       ? "tagged_word_f1"
                           : text.task == TagTask::kSegment ? "word_f1"
                                                            : "span_f1";
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
                   .samples = batch.samples,
                   .before = batch.before,
                   .after = batch.after},
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

Validation measure(const SetTags& found, const TaggedWords& truth, const TaggerRun& run) {
  Validation validation{.loss = found.mean_loss()};
  double sum = 0;
  index counted = 0;
  for (std::size_t c = 0; c < run.tags.size(); ++c) {
    const auto score = add_metrics(found, truth, run, c, validation.metrics);
    if (!score) continue;
    sum += *score;
    ++counted;
  }
  validation.score = sum / static_cast<double>(std::max<index>(counted, 1));
  if (run.tags.size() > 1) validation.metrics.push_back({"mean", *validation.score});
  validation.score = score_with_tie(*validation.score, validation.loss);
  if (run.settings.text.metric == TaggerMetric::kLoss) validation.score.reset();
  return validation;
}

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
                                                       const Interrupted& interrupted) {
  const auto found = predicted_tags(free_tape(), model_, set, interrupted);
  if (!found) return std::nullopt;
  return measure(*found, set.words(), run_);
}

template RunCost cost_of(const TaggerRun&);
template double flops_of_update(const Context&, const TaggerRun&);
template double training_memory(const Context&, const TaggerRun&, index);
template double updates_to_come(const TaggerRun&, const RunState&);
template RunTime estimate_run_time(const Context&, const TaggerRun&, const RunState&);

}  // namespace fovea
