// SPDX-License-Identifier: Apache-2.0
#include "fovea/task/evaluate_tagger.h"

#include <algorithm>
#include <utility>

#include "fovea/base/check.h"
#include "fovea/base/option.h"
#include "fovea/task/tag/read_scheme.h"
#include "fovea/task/tag/read_sentences.h"
#include "fovea/task/tag_predictor.h"
#include "fovea/text/utf8.h"

namespace fovea {

namespace {

// The words of spans of characters.
std::vector<index> ends_of(const std::vector<TagSpan>& spans) {
  std::vector<index> ends;
  for (const TagSpan& span : spans) ends.push_back(span.end);
  return ends;
}

class Test {
 public:
  Test(const Context& context, const LoadedTagger& model, const TaggerTestOptions& options)
      : context_(context),
        model_(model),
        options_(options),
        scheme_(model.tags.scheme()),
        types_(model.tags.types()),
        predictor_(context, model) {}

  void read(const std::string& file);
  TaggerScore score(std::vector<std::string>& notes);

 private:
  std::optional<TagScheme> scheme_of_file(const std::string& file);
  void keep(const std::string& file, TaggedSentence& sentence, const TaggedByModel& found,
            const std::optional<TagScheme>& scheme);
  std::vector<ParsedTag> parsed(const std::vector<std::string>& tags, TagScheme scheme);
  void keep_segments(const TaggedSentence& sentence, const SentenceSpans& spans);
  void keep_mistake(TaggedMistake mistake);

  const Context& context_;
  const LoadedTagger& model_;
  const TaggerTestOptions& options_;
  const std::optional<TagScheme> scheme_;  // of the model
  TagTypes types_;
  TagPredictor predictor_;
  std::vector<TaggedSentence> waiting_;  // of the file
  std::vector<SentenceSpans> spans_;
  std::vector<SegmentedSentence> segments_;
  std::vector<TaggedMistake> mistakes_;
  std::vector<std::string> broken_;  // what is said of tags that break their scheme
  index words_ = 0, unknown_ = 0;
  std::string first_unknown_;  // where, and which
};

// The scheme of the file's tags, which may be another than the model's.
std::optional<TagScheme> Test::scheme_of_file(const std::string& file) {
  if (!scheme_) return std::nullopt;
  const ReadScheme read = read_scheme(
      waiting_, *scheme_,
      {.place = [&](std::size_t i,
                    std::size_t w) { return fmt::format("{}:{}", file, waiting_[i].lines[w]); },
       .hint = "the model's tags mark spans: correct the tag, or say where the tags are: "
               "--tag-column"});
  if (read.repairs.total() > 0) {
    broken_.push_back(
        fmt::format("{}: {}; spans are read as conlleval reads them", file, broken_tags(read)));
  }
  return read.scheme;
}

void Test::read(const std::string& file) {
  TaggerTextOptions reading = model_.settings.text;
  reading.table = options_.table;
  const std::string name = name_of_input(file);
  waiting_.clear();
  for (TaggedSentence& sentence : read_tagged(file, table_options(reading))) {
    TaggedSentence seen = as_seen(std::move(sentence), reading.task);
    if (seen.size() > 0) waiting_.push_back(std::move(seen));
  }
  const std::optional<TagScheme> scheme = scheme_of_file(name);
  for (std::size_t begin = 0; begin < waiting_.size();) {
    const std::size_t end = std::min(begin + TagPredictor::kSentencesAtOnce, waiting_.size());
    std::vector<std::vector<std::string>> words;
    for (std::size_t i = begin; i < end; ++i) words.push_back(waiting_[i].words);
    const std::vector<TaggedByModel> found = predictor_.tag(words);
    for (std::size_t i = begin; i < end; ++i) keep(name, waiting_[i], found[i - begin], scheme);
    begin = end;
  }
}

std::vector<ParsedTag> Test::parsed(const std::vector<std::string>& tags, TagScheme scheme) {
  std::vector<ParsedTag> all;
  for (const std::string& tag : tags) all.push_back(parse_tag(tag, scheme, types_));
  return all;
}

void Test::keep(const std::string& file, TaggedSentence& sentence, const TaggedByModel& found,
                const std::optional<TagScheme>& scheme) {
  TaggedMistake mistake{.file = file, .line = sentence.lines[0], .words = sentence.words};
  for (const std::int32_t tag : found.tags) mistake.predicted.push_back(model_.tags.name(tag));
  SentenceSpans spans{.tokens = sentence.size()};
  if (scheme) {
    spans.truth = spans_of(parsed(sentence.tags, *scheme), *scheme);
    spans.predicted = spans_of(parsed(mistake.predicted, *scheme_), *scheme_);
    if (*scheme != *scheme_) sentence.tags = convert_tags(sentence.tags, *scheme, *scheme_);
  }
  mistake.truth = std::move(sentence.tags);
  for (std::size_t w = 0; w < mistake.truth.size(); ++w) {
    if (mistake.truth[w] != mistake.predicted[w]) ++mistake.wrong;
    if (model_.tags.find(mistake.truth[w]) >= 0 || unknown_++ > 0) continue;
    first_unknown_ = fmt::format("{}:{} ({})", file, sentence.lines[w], excerpt(mistake.truth[w]));
  }
  words_ += sentence.size();
  spans.right_tokens = spans.tokens - mistake.wrong;
  if (model_.segments()) keep_segments(sentence, spans);
  spans_.push_back(std::move(spans));
  if (mistake.wrong > 0) keep_mistake(std::move(mistake));
}

void Test::keep_segments(const TaggedSentence& sentence, const SentenceSpans& spans) {
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
void Test::keep_mistake(TaggedMistake mistake) {
  const auto worse = [](const TaggedMistake& a, const TaggedMistake& b) {
    return a.wrong > b.wrong;
  };
  const auto at = std::upper_bound(mistakes_.begin(), mistakes_.end(), mistake, worse);
  if (at - mistakes_.begin() >= options_.mistakes) return;
  mistakes_.insert(at, std::move(mistake));
  if (static_cast<index>(mistakes_.size()) > options_.mistakes) mistakes_.pop_back();
}

TaggerScore Test::score(std::vector<std::string>& notes) {
  notes.insert(notes.end(), broken_.begin(), broken_.end());
  if (predictor_.cut() > 0) {
    notes.push_back(fmt::format(
        "sentences longer than the model's --max-length ({}): {}; they are read in pieces",
        model_.settings.text.max_length, predictor_.cut()));
  }
  if (unknown_ > 0) {
    notes.push_back(
        fmt::format("words whose tag the model does not know: {}, the first at {}; they count as "
                    "wrong",
                    unknown_, first_unknown_));
  }
  TaggerScore score{.task = model_.settings.text.task,
                    .sentences = static_cast<index>(spans_.size()),
                    .words = words_,
                    .unknown_tags = unknown_,
                    .confidence = options_.bootstrap.confidence,
                    .types = types_.names()};
  score.has_spans = scheme_ && (!model_.segments() || model_.settings.text.joint);
  if (model_.segments()) {
    score.segmentation = segmentation_intervals(context_, segments_, options_.bootstrap);
  }
  score.spans = span_intervals(context_, spans_, types_.size(), options_.bootstrap);
  if (score.has_spans) score.confusion = type_confusion(spans_, types_.size());
  score.mistakes = std::move(mistakes_);
  return score;
}

}  // namespace

TaggerScore evaluate_tagger(const Context& context, const LoadedTagger& model,
                            std::span<const std::string> files, const TaggerTestOptions& options,
                            std::vector<std::string>& notes) {
  check_options(options.table);
  require_option(options.mistakes >= 0, "errors", options.mistakes, "at least 0");
  Test test(context, model, options);
  for (const std::string& file : files) test.read(file);
  return test.score(notes);
}

}  // namespace fovea
