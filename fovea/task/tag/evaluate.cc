// SPDX-License-Identifier: Apache-2.0
#include "fovea/task/tag/evaluate.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "fovea/base/check.h"
#include "fovea/base/option.h"
#include "fovea/task/score_json.h"
#include "fovea/task/tag/read_sentences.h"
#include "fovea/task/tag/tag_predictor.h"
#include "fovea/text/utf8.h"

namespace fovea {

namespace {

Json json_of_types(const TaggerScore& score) {
  Json::Array list;
  for (std::size_t k = 0; k < score.types.size(); ++k) {
    const ScoresOf<Interval>& scores = score.spans.types[k];
    Json::Object type;
    add(type, "type", score.types[k]);
    add(type, "support", score.spans.support[k]);
    add(type, "predicted", score.spans.predicted[k]);
    add(type, "right", score.spans.right[k]);
    add_scores(type, scores);
    list.emplace_back(std::move(type));
  }
  return list;
}

Json json_of_mistake(const TaggedMistake& mistake) {
  Json::Object object;
  add(object, "file", mistake.file);
  add(object, "line", mistake.line);
  add(object, "words", json_of_texts(mistake.words));
  add(object, "tags", json_of_texts(mistake.truth));
  add(object, "predicted", json_of_texts(mistake.predicted));
  add(object, "wrong", mistake.wrong);
  return object;
}

Json json_of_score(const TaggerScore& score) {
  Json::Object object;
  if (!score.column.empty()) add(object, "column", score.column);
  add(object, "task", std::string(to_string(score.task)));
  add(object, "sentences", score.sentences);
  add(object, score.task == TagTask::kSegment ? "characters" : "words", score.words);
  add(object, "unknown_tags", score.unknown_tags);
  add(object, "confidence", score.confidence);
  score.visit_numbers([&](std::string_view name, const Interval& interval) {
    add(object, name, json_of_interval(interval));
  });
  if (score.has_spans) add(object, "types", json_of_types(score));
  if (score.confusion) add(object, "confusion", json_of_matrix(*score.confusion));
  Json::Array mistakes;
  for (const TaggedMistake& mistake : score.mistakes) mistakes.push_back(json_of_mistake(mistake));
  add(object, "mistakes", std::move(mistakes));
  return object;
}

// The words of spans of characters.
std::vector<index> ends_of(const std::vector<TagSpan>& spans) {
  std::vector<index> ends;
  for (const TagSpan& span : spans) ends.push_back(span.end);
  return ends;
}

// The tags of one column.
class ColumnTest {
 public:
  ColumnTest(const LoadedTagger& model, std::size_t column, const TaggerTestOptions& options)
      : model_(model),
        options_(options),
        column_(column),
        tags_(model.tags[column]),
        types_(tags_.types()) {}

  // The scheme of a file's tags, which may be another than the model's.
  void begin_file(const std::string& file, std::span<const TaggedSentence> sentences);
  void keep(TaggedSentence& sentence, const TaggedByModel& found);
  TaggerScore score(const Context& context, std::vector<std::string>& notes);

 private:
  std::vector<ParsedTag> parsed(const std::vector<std::string>& tags, TagScheme scheme);
  void keep_segments(const TaggedSentence& sentence, const SentenceSpans& spans);
  void keep_mistake(TaggedMistake mistake);
  // The end of a message about one of several columns of the file.
  std::string where() const { return model_.tags.size() == 1 ? "" : " in column " + name_in_file_; }

  const LoadedTagger& model_;
  const TaggerTestOptions& options_;
  const std::size_t column_;
  const TagSet& tags_;
  TagTypes types_;
  std::string file_, name_in_file_;
  std::optional<TagScheme> scheme_;  // of the file
  std::vector<SentenceSpans> spans_;
  std::vector<SegmentedSentence> segments_;
  std::vector<TaggedMistake> mistakes_;
  std::vector<std::string> broken_;  // what is said of tags that break their scheme
  index words_ = 0, unknown_ = 0;
  std::string first_unknown_;  // where, and which
};

void ColumnTest::begin_file(const std::string& file, std::span<const TaggedSentence> sentences) {
  file_ = file;
  name_in_file_ = tag_columns(format_of(file, options_.table), options_.table)[column_];
  if (!tags_.scheme()) return;
  const std::string where_said = where();
  const ReadScheme read = read_scheme(
      sentences, column_, *tags_.scheme(),
      {.place = [&](std::size_t i,
                    std::size_t w) { return fmt::format("{}:{}", file, sentences[i].lines[w]); },
       .hint = "the model's tags mark spans: correct the tag, or say where the tags are: "
               "--tag-column",
       .where = where_said});
  if (read.repairs.total() > 0) {
    broken_.push_back(
        fmt::format("{}: {}; spans are read as conlleval reads them", file, broken_tags(read)));
  }
  scheme_ = read.scheme;
}

std::vector<ParsedTag> ColumnTest::parsed(const std::vector<std::string>& tags, TagScheme scheme) {
  std::vector<ParsedTag> all;
  for (const std::string& tag : tags) all.push_back(parse_tag(tag, scheme, types_));
  return all;
}

void ColumnTest::keep(TaggedSentence& sentence, const TaggedByModel& found) {
  TaggedMistake mistake{.file = file_, .line = sentence.lines[0], .words = sentence.words};
  std::vector<std::string>& truth = sentence.tags[column_];
  for (const std::int32_t tag : found.tags) mistake.predicted.push_back(tags_.name(tag));
  SentenceSpans spans{.tokens = sentence.size()};
  if (scheme_) {
    const TagScheme scheme = *tags_.scheme();
    spans.truth = spans_of(parsed(truth, *scheme_), *scheme_);
    spans.predicted = spans_of(parsed(mistake.predicted, scheme), scheme);
    if (*scheme_ != scheme) truth = convert_tags(truth, *scheme_, scheme);
  }
  mistake.truth = std::move(truth);
  for (std::size_t w = 0; w < mistake.truth.size(); ++w) {
    if (mistake.truth[w] != mistake.predicted[w]) ++mistake.wrong;
    if (tags_.find(mistake.truth[w]) >= 0) continue;
    if (++unknown_ > 1) continue;
    first_unknown_ = fmt::format("{}:{} ({})", file_, sentence.lines[w], excerpt(mistake.truth[w]));
  }
  words_ += sentence.size();
  spans.right_tokens = spans.tokens - mistake.wrong;
  if (model_.segments()) keep_segments(sentence, spans);
  spans_.push_back(std::move(spans));
  if (mistake.wrong > 0) keep_mistake(std::move(mistake));
}

void ColumnTest::keep_segments(const TaggedSentence& sentence, const SentenceSpans& spans) {
  SegmentedSentence segments{.truth = ends_of(spans.truth), .predicted = ends_of(spans.predicted)};
  for (const TagSpan& span : spans.truth) {
    std::string word;
    for (index c = span.begin; c < span.end; ++c) {
      word += sentence.words[static_cast<std::size_t>(c)];
    }
    segments.unknown.push_back(model_.vocabulary.knows(word) ? 0 : 1);
  }
  segments_.push_back(std::move(segments));
}

// The worst so far, in the order of the files where they are as bad.
void ColumnTest::keep_mistake(TaggedMistake mistake) {
  const auto worse = [](const TaggedMistake& a, const TaggedMistake& b) {
    return a.wrong > b.wrong;
  };
  const auto at = std::upper_bound(mistakes_.begin(), mistakes_.end(), mistake, worse);
  if (at - mistakes_.begin() >= options_.mistakes) return;
  mistakes_.insert(at, std::move(mistake));
  if (static_cast<index>(mistakes_.size()) > options_.mistakes) mistakes_.pop_back();
}

TaggerScore ColumnTest::score(const Context& context, std::vector<std::string>& notes) {
  notes.insert(notes.end(), broken_.begin(), broken_.end());
  if (unknown_ > 0) {
    notes.push_back(
        fmt::format("words whose tag{} the model does not know: {}, the first at {}; they count as "
                    "wrong",
                    where(), unknown_, first_unknown_));
  }
  TaggerScore score{.task = model_.settings.text.task,
                    .sentences = static_cast<index>(spans_.size()),
                    .words = words_,
                    .unknown_tags = unknown_,
                    .confidence = options_.bootstrap.confidence,
                    .types = types_.names()};
  if (model_.tags.size() > 1) score.column = model_.columns()[column_];
  score.has_spans = tags_.scheme() && (!model_.segments() || model_.settings.text.joint);
  if (model_.segments()) {
    score.segmentation = segmentation_intervals(context, segments_, options_.bootstrap);
  }
  score.spans = span_intervals(context, spans_, types_.size(), options_.bootstrap);
  if (score.has_spans) score.confusion = type_confusion(spans_, types_.size());
  score.mistakes = std::move(mistakes_);
  return score;
}

void require_columns_of_model(const LoadedTagger& model, const TaggedOptions& table,
                              const std::string& name) {
  const std::size_t given = tag_columns(format_of(name, table), table).size();
  if (given == model.tags.size()) return;
  throw Error(ErrorCode::kOptionValue,
              fmt::format("{}: expected {} tag column{} ({}), as the model has, got {}", name,
                          model.tags.size(), model.tags.size() == 1 ? "" : "s",
                          fmt::join(model.columns(), ", "), given),
              "name as many, in the model's order: --tag-column (of CoNLL-U --column)");
}

// Reads the files and gives each column what the model says.
class TaggerTest {
 public:
  TaggerTest(const Context& context, const LoadedTagger& model, const TaggerTestOptions& options)
      : context_(context), model_(model), options_(options), predictor_(context, model) {
    for (std::size_t c = 0; c < model.tags.size(); ++c) columns_.emplace_back(model, c, options);
  }

  void read(const std::string& file);
  std::vector<TaggerScore> score(std::vector<std::string>& notes);

 private:
  const Context& context_;
  const LoadedTagger& model_;
  const TaggerTestOptions& options_;
  TagPredictor predictor_;
  std::vector<ColumnTest> columns_;
};

void TaggerTest::read(const std::string& file) {
  TaggerTextOptions reading = model_.settings.text;
  reading.table = options_.table;
  const std::string name = name_of_input(file);
  require_columns_of_model(model_, options_.table, name);
  std::vector<TaggedSentence> sentences = read_as_seen(file, table_options(reading), reading.task);
  for (ColumnTest& column : columns_) column.begin_file(name, sentences);
  for (std::size_t begin = 0; begin < sentences.size();) {
    const std::size_t end = std::min(begin + TagPredictor::kSentencesAtOnce, sentences.size());
    std::vector<std::vector<std::string>> words;
    for (std::size_t i = begin; i < end; ++i) words.push_back(sentences[i].words);
    const auto found = predictor_.tag(words);
    for (std::size_t i = begin; i < end; ++i) {
      for (std::size_t c = 0; c < columns_.size(); ++c) {
        columns_[c].keep(sentences[i], found[i - begin][c]);
      }
    }
    begin = end;
  }
}

std::vector<TaggerScore> TaggerTest::score(std::vector<std::string>& notes) {
  if (predictor_.cut() > 0) {
    notes.push_back(fmt::format("sentences longer than the model's {}: {}; they are read in pieces",
                                model_.longest(), predictor_.cut()));
  }
  std::vector<TaggerScore> scores;
  for (ColumnTest& column : columns_) scores.push_back(column.score(context_, notes));
  return scores;
}

}  // namespace

std::string in_words(const std::vector<std::string>& characters,
                     const std::vector<std::string>& tags) {
  std::string text, own;
  for (std::size_t c = 0; c < characters.size(); ++c) {
    if (tags[c].starts_with('B') || tags[c].starts_with('S')) {
      if (c > 0) text += own + ' ';
      const std::size_t dash = tags[c].find('-');
      own = dash == std::string::npos ? "" : "/" + escape_text(tags[c].substr(dash + 1));
    }
    text += escape_text(characters[c]);
  }
  return text + own;
}

double main_number(const TaggerScore& score) {
  return score.has_spans ? score.spans.micro.f1.value : score.spans.accuracy.value;
}

double mean_score(std::span<const TaggerScore> columns) {
  double sum = 0;
  for (const TaggerScore& score : columns) sum += main_number(score);
  return sum / static_cast<double>(columns.size());
}

Json json_of_scores(std::span<const TaggerScore> columns) {
  if (columns.size() == 1) return json_of_score(columns[0]);
  Json::Object object;
  add(object, "mean", mean_score(columns));
  Json::Array all;
  for (const TaggerScore& score : columns) all.push_back(json_of_score(score));
  add(object, "columns", std::move(all));
  return object;
}

std::vector<TaggerScore> evaluate_tagger(const Context& context, const LoadedTagger& model,
                                         std::span<const std::string> files,
                                         const TaggerTestOptions& options,
                                         std::vector<std::string>& notes) {
  check_options(options.table);
  require_option(options.mistakes >= 0, "errors", options.mistakes, "at least 0");
  TaggerTest test(context, model, options);
  for (const std::string& file : files) test.read(file);
  return test.score(notes);
}

}  // namespace fovea
