// SPDX-License-Identifier: Apache-2.0
#include "fovea/task/tag/tag_predictor.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "fovea/base/check.h"
#include "fovea/base/machine.h"
#include "fovea/config/json.h"
#include "fovea/model/pass_plan.h"
#include "fovea/model/text_batch.h"
#include "fovea/task/score_json.h"
#include "fovea/task/tag/run.h"
#include "fovea/text/utf8.h"
#include "fovea/text/words.h"

namespace fovea {

namespace {

constexpr index kSmallestTagBatch = 512;  // words
constexpr index kLettersOfWord = 16;      // few words have more

}  // namespace

TagPredictor::TagPredictor(const Context& context, const LoadedTagger& model, index batch_words)
    : context_(context), model_(model), batch_words_(batch_words), tapes_(context) {
  check(batch_words >= 1, "tags: {} words a batch; expected at least 1", batch_words);
  const index longest = std::max(batch_words, model.settings.text.max_length);
  const TapeLoad load{.tokens = longest, .mode = TapeMode::kInference, .sequences = longest};
  const index characters = (model.reads_pieces() ? 1 : kLettersOfWord) * longest;
  const double bytes = plan_passes_apart(context, model.model->config(),
                                         WordLoad{.tape = load, .characters = characters})
                           .bytes();
  require_memory("the tags", bytes, "use fewer threads (--threads), or a machine with more memory");
}

void TagPredictor::read(std::span<const std::vector<std::string>> sentences) {
  read_ = {};
  sentence_of_.clear();
  place_of_.clear();
  for (std::size_t s = 0; s < sentences.size(); ++s) {
    const std::size_t before = sentence_of_.size();
    model_.reads_pieces() ? read_subwords(sentences[s]) : read_own(sentences[s]);
    sentence_of_.resize(static_cast<std::size_t>(read_.size()), s);
    ++sentences_;
    words_ += std::ssize(sentences[s]);
    cut_ += sentence_of_.size() > before + 1 ? 1 : 0;
  }
}

void TagPredictor::read_own(std::span<const std::string> words) {
  for (const WordRange range : pieces_of(std::ssize(words), model_.settings.text.max_length)) {
    append(read_, model_.vocabulary,
           words.subspan(static_cast<std::size_t>(range.begin),
                         static_cast<std::size_t>(range.end - range.begin)));
  }
  for (index w = 0; w < std::ssize(words); ++w) place_of_.push_back(w);
}

void TagPredictor::read_subwords(std::span<const std::string> words) {
  const std::vector<index> places = append_subwords(read_, *model_.vocabulary.pieces.tokenizer,
                                                    model_.settings.text.max_length, words);
  place_of_.insert(place_of_.end(), places.begin(), places.end());
}

// As batches count it.
index TagPredictor::length_of(index piece) const {
  if (!model_.reads_pieces()) return read_.length(piece);
  const auto character = [&](index sentence) {
    const index word = read_.starts[static_cast<std::size_t>(sentence)];
    return read_.character_starts[static_cast<std::size_t>(word)];
  };
  return character(piece + 1) - character(piece) + read_.marks();
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

TagPredictor::BatchTags TagPredictor::tags_by_model(const Context& context, const TagScores& scores,
                                                    std::size_t column,
                                                    TagProbabilities probabilities) const {
  const Tagger& model = *model_.model;
  try {
    BatchTags found{.tags = model.best_tags(context, scores, column)};
    if (probabilities == TagProbabilities::kYes) {
      found.probabilities = model.probabilities(context, scores, column);
    }
    return found;
  } catch (const Error& error) {
    // Its tags may leave no path, or its transitions be no numbers.
    if (error.code() != ErrorCode::kOptionValue) throw;
    throw Error(ErrorCode::kModelDamaged, error.what(),
                "train the model again, or use an earlier checkpoint");
  }
}

void TagPredictor::hand_out(const Tape& tape, const TaggedBatch& batch, const TagScores& scores,
                            std::size_t column, TagProbabilities probabilities,
                            Results& results) const {
  const auto [tags, all] = tags_by_model(tape.context(), scores, column, probabilities);
  const index width = model_.tags[column].size();
  for (std::size_t n = 0; n < batch.samples.size(); ++n) {
    const auto piece = static_cast<std::size_t>(batch.samples[n]);
    TaggedByModel& result = results[sentence_of_[piece]][column];
    auto place = place_of_.begin() + read_.starts[piece];
    for (index w = batch.offsets[n]; w < batch.offsets[n + 1]; ++w, ++place) {
      result.tags[static_cast<std::size_t>(*place)] = tags[static_cast<std::size_t>(w)];
      if (probabilities == TagProbabilities::kNo) continue;
      std::transform(all.begin() + width * w, all.begin() + width * (w + 1),
                     result.probabilities.begin() + width * *place,
                     [](double p) { return static_cast<float>(p); });
    }
  }
}

// What words that are not read have, which have no subword: the tag O, or else the first one.
TaggedByModel TagPredictor::untagged(std::size_t words, std::size_t column,
                                     TagProbabilities probabilities) const {
  const TagSet& tags = model_.tags[column];
  const std::int32_t outside = std::max(tags.find("O"), 0);
  TaggedByModel result;
  result.tags.assign(words, outside);
  if (probabilities == TagProbabilities::kNo) return result;
  const auto width = static_cast<std::size_t>(tags.size());
  result.probabilities.resize(width * words);
  for (std::size_t w = 0; w < words; ++w) {
    result.probabilities[width * w + static_cast<std::size_t>(outside)] = 1;
  }
  return result;
}

std::vector<std::vector<TaggedByModel>> TagPredictor::tag(
    std::span<const std::vector<std::string>> sentences, TagProbabilities probabilities) {
  read(sentences);
  Results results(sentences.size());
  for (std::size_t s = 0; s < sentences.size(); ++s) {
    for (std::size_t column = 0; column < model_.tags.size(); ++column) {
      results[s].push_back(untagged(sentences[s].size(), column, probabilities));
    }
  }
  std::vector<index> lengths;
  for (index piece = 0; piece < read_.size(); ++piece) lengths.push_back(length_of(piece));
  const BatchSizes sizes{.fewest = kSmallestTagBatch, .most = batch_words_};
  tapes_.for_each(LengthBatches(lengths, sizes, context_.threads()),
                  [&](Tape& tape, std::span<const index> batch) {
                    tag_batch(tape, batch, probabilities, results);
                  });
  return results;
}

namespace {

std::vector<TagSpan> found_spans(const TagSet& tags, const TaggedByModel& found) {
  std::vector<ParsedTag> parsed;
  for (const std::int32_t tag : found.tags) parsed.push_back(tags.parsed(tag));
  return spans_of(parsed, *tags.scheme());
}

// The probability of each tag that was chosen.
std::vector<float> chosen(const TagSet& tags, const TaggedByModel& found) {
  std::vector<float> values;
  if (found.probabilities.empty()) return values;
  for (std::size_t w = 0; w < found.tags.size(); ++w) {
    values.push_back(found.probabilities[w * static_cast<std::size_t>(tags.size()) +
                                         static_cast<std::size_t>(found.tags[w])]);
  }
  return values;
}

void add_probabilities(Json::Object& object, const TagSet& tags, const TaggedByModel& found) {
  const std::vector<float> values = chosen(tags, found);
  if (!values.empty()) add(object, "probabilities", Json::Array(values.begin(), values.end()));
}

std::string joined(const TaggedSentence& sentence, const TagSpan& span) {
  std::string text;
  for (index w = span.begin; w < span.end; ++w) {
    text += (w > span.begin ? " " : "") + sentence.words[static_cast<std::size_t>(w)];
  }
  return text;
}

void add_tags(Json::Object& object, const TaggedSentence& sentence, const TaggedColumn& column) {
  const auto& [tags, found, name] = column;
  Json::Array names;
  for (const std::int32_t tag : found.tags) names.emplace_back(tags.name(tag));
  add(object, "tags", std::move(names));
  if (tags.scheme()) {
    Json::Array spans;
    for (const TagSpan& span : found_spans(tags, found)) {
      Json::Object one;
      add(one, "type", tags.types().names()[static_cast<std::size_t>(span.type)]);
      add(one, "begin", span.begin);
      add(one, "end", span.end);
      add(one, "text", joined(sentence, span));
      spans.emplace_back(std::move(one));
    }
    add(object, "spans", std::move(spans));
  }
  add_probabilities(object, tags, found);
}

}  // namespace

std::vector<FoundWord> words_of(std::string_view line, const TagSet& tags,
                                const TaggedByModel& found) {
  const std::vector<TagSpan> spans = found_spans(tags, found);
  const std::vector<std::string>& types = tags.types().names();
  std::vector<FoundWord> words;
  std::size_t span = 0, at = 0;
  index character = 0;
  bool begins = true;
  char32_t before = U'\n';
  std::int32_t graphemes = 0;
  while (at < line.size()) {
    const DecodedCharacter c = decode_character(line.substr(at));
    const bool may_begin = is_grapheme_break(before, c.value, graphemes);
    before = c.value;
    const std::size_t end = at + static_cast<std::size_t>(c.length);
    if (is_white_space(c.value)) {
      begins = true;
    } else {
      while (span < spans.size() && spans[span].end <= character) ++span;
      const bool inside = span < spans.size();
      if (begins || (may_begin && (!inside || spans[span].begin == character))) {
        // The only type of a segmenter that has not learned tags has no name.
        words.push_back({at, end, inside ? types[static_cast<std::size_t>(spans[span].type)] : ""});
      }
      words.back().end = end;
      begins = false;
      ++character;
    }
    at = end;
  }
  return words;
}

std::string segmented(std::string_view line, std::span<const FoundWord> words) {
  std::string text;
  std::size_t at = 0;
  for (const FoundWord& word : words) {
    // White space that was there stays, and is enough.
    if (word.begin == at && at > 0) text += ' ';
    text += line.substr(at, word.end - at);
    if (!word.tag.empty()) text += '/' + word.tag;
    at = word.end;
  }
  return text += line.substr(at);
}

TaggedSentence sentence_of(std::string_view text, WordSplit split) {
  TaggedSentence sentence;
  for (std::string_view word = take_word(text, split); !word.empty();
       word = take_word(text, split)) {
    sentence.source.push_back(
        {.text = std::string(word), .word = sentence.size(), .has_columns = true});
    sentence.words.emplace_back(word);
  }
  sentence.source.push_back({});
  return sentence;
}

std::string tagged_lines(const TaggedSentence& sentence, std::span<const TaggedColumn> columns,
                         const TagLineOptions& options) {
  std::vector<std::vector<std::string>> added;
  for (const auto& [tags, found, name] : columns) {
    std::vector<std::string>& names = added.emplace_back();
    for (const std::int32_t tag : found.tags) names.push_back(tags.name(tag));
    if (options.probabilities == TagProbabilities::kNo) continue;
    std::vector<std::string>& numbers = added.emplace_back();
    for (const float value : chosen(tags, found)) numbers.push_back(fmt::format("{:.4f}", value));
  }
  return with_columns(sentence, added, options.format == TaggedFormat::kConllu ? "_" : "O");
}

std::string tagged_json(const TaggedSentence& sentence, std::span<const TaggedColumn> columns) {
  Json::Object object;
  add(object, "words", Json::Array(sentence.words.begin(), sentence.words.end()));
  if (columns.size() == 1) {
    add_tags(object, sentence, columns[0]);
    return Json(std::move(object)).line();
  }
  Json::Array all;
  for (const TaggedColumn& column : columns) {
    Json::Object one;
    add(one, "column", column.name);
    add_tags(one, sentence, column);
    all.emplace_back(std::move(one));
  }
  add(object, "columns", std::move(all));
  return Json(std::move(object)).line();
}

std::string segmented_json(std::string_view line, const TagSet& tags, const TaggedByModel& found) {
  if (line.ends_with('\r')) line.remove_suffix(1);
  Json::Object object;
  Json::Array texts, names;
  bool has_tags = false;
  for (const FoundWord& word : words_of(line, tags, found)) {
    texts.emplace_back(line.substr(word.begin, word.end - word.begin));
    names.emplace_back(word.tag);
    has_tags |= !word.tag.empty();
  }
  add(object, "text", line);
  add(object, "words", std::move(texts));
  if (has_tags) add(object, "tags", std::move(names));
  add_probabilities(object, tags, found);
  return Json(std::move(object)).line();
}

}  // namespace fovea
