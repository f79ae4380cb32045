// SPDX-License-Identifier: Apache-2.0
#include "fovea/task/tag/read_sentences.h"

#include <algorithm>
#include <iterator>
#include <unordered_set>
#include <utility>

#include "fovea/base/check.h"
#include "fovea/data/label_set.h"
#include "fovea/data/tagged/characters.h"
#include "fovea/task/tag/encode.h"
#include "fovea/task/tag/read_scheme.h"
#include "fovea/text/utf8.h"

namespace fovea {

namespace {

// Sentences and the files that they come from.
struct Table {
  std::vector<TaggedSentence> sentences = {};
  std::vector<std::string> names = {};
  std::vector<std::size_t> ends = {};  // the number of sentences up to the end of each file

  std::string place(std::size_t sentence, std::size_t word) const {
    const auto file = static_cast<std::size_t>(
        std::upper_bound(ends.begin(), ends.end(), sentence) - ends.begin());
    return fmt::format("{}:{}", names[file], sentences[sentence].lines[word]);
  }
};

void read_into(Table& table, const std::vector<std::string>& files,
               const TaggerTextOptions& options) {
  for (const std::string& file : files) {
    for (TaggedSentence& sentence : read_tagged(file, table_options(options))) {
      TaggedSentence seen = as_seen(std::move(sentence), options.task);
      if (seen.size() > 0) table.sentences.push_back(std::move(seen));
    }
    table.names.push_back(name_of_input(file));
    table.ends.push_back(table.sentences.size());
  }
}

std::vector<std::string> names_of(const Table& table, std::size_t begin, std::size_t end) {
  std::unordered_set<std::string> names;
  for (std::size_t i = begin; i < end; ++i) {
    names.insert(table.sentences[i].tags.begin(), table.sentences[i].tags.end());
  }
  return LabelSet({names.begin(), names.end()}).names();
}

// Converts the sentences `begin` to `end`, and says what they were.
void convert(Table& table, std::size_t begin, std::size_t end, TagScheme to,
             std::vector<std::string>& notes) {
  if (begin == end) return;
  const auto sentences = std::span(table.sentences).subspan(begin, end - begin);
  const ReadScheme from =
      read_scheme(sentences, to,
                  {.place = [&](std::size_t i, std::size_t w) { return table.place(begin + i, w); },
                   .hint = "correct the tag, or take tags as they are: --scheme none"});
  for (TaggedSentence& sentence : sentences) {
    sentence.tags = convert_tags(sentence.tags, from.scheme, to);
  }
  const std::string_view whose = begin == 0 ? "" : "of --valid: ";
  if (from.repairs.total() > 0) {
    notes.push_back(fmt::format("{}{}; they are repaired", whose, broken_tags(from)));
  }
  if (from.scheme != to) {
    notes.push_back(fmt::format("{}tags of the scheme {} are converted to {}", whose,
                                to_string(from.scheme), to_string(to)));
  }
}

// Long sentences in pieces, each with tags that keep to the scheme.
void cut_into(std::vector<TaggedSentence>& all, TaggedSentence sentence, index most,
              const std::optional<TagScheme>& scheme) {
  if (sentence.size() <= most) return all.push_back(std::move(sentence));
  const auto part = [](const auto& values, WordRange range) {
    return std::vector(values.begin() + range.begin, values.begin() + range.end);
  };
  for (const WordRange range : pieces_of(sentence.size(), most)) {
    TaggedSentence piece{.words = part(sentence.words, range),
                         .tags = part(sentence.tags, range),
                         .lines = part(sentence.lines, range),
                         .source = {}};
    if (scheme) piece.tags = convert_tags(piece.tags, *scheme, *scheme);
    all.push_back(std::move(piece));
  }
}

std::string tags_line(const TagSet& tags, TagTask task) {
  if (task == TagTask::kSegment && tags.size() <= 4) return "tags: B, M, E, S of characters";
  constexpr index kMostListed = 20;
  std::string line = fmt::format("tags: {}, {}", tags.size(),
                                 tags.scheme() ? fmt::format("scheme {}", to_string(*tags.scheme()))
                                               : "each for a word alone");
  for (index k = 0; k < std::min(kMostListed, tags.size()); ++k) {
    line += (k == 0 ? "; " : ", ") + escape_text(tags.names()[static_cast<std::size_t>(k)]);
  }
  return tags.size() > kMostListed ? line + ", ..." : line;
}

void require_difference(const Table& table, const std::vector<std::string>& names) {
  if (names.size() > 1) return;
  throw Error(ErrorCode::kInputTooSmall,
              fmt::format("{}: every tag to train on is {}: at least two are needed",
                          table.names[0], excerpt(names[0])),
              "add sentences with other tags, or say which column has them: --tag-column (of "
              "CoNLL-U --column)");
}

void require_spans(const TaggerTextOptions& options, const std::optional<TagScheme>& scheme) {
  if (options.metric != TaggerMetric::kSpanF1 || scheme) return;
  throw Error(ErrorCode::kOptionValue, "--metric span-f1: the tags to train on mark no spans",
              "choose --metric accuracy or loss, or say where the tags are: --tag-column (of "
              "CoNLL-U --column)");
}

std::vector<bool> split(std::size_t trains, std::size_t all, const TaggerTextOptions& options,
                        std::uint64_t seed) {
  if (options.valid.empty()) {
    return draw_stratified(std::vector<index>(all), options.valid_fraction, seed);
  }
  std::vector<bool> validates(all, true);
  std::fill_n(validates.begin(), trains, false);
  return validates;
}

void count_unknown_tags(const Table& table, TaggedSet& set) {
  std::string first;
  for (std::size_t i = 0; i < table.sentences.size(); ++i) {
    const std::vector<std::string>& tags = table.sentences[i].tags;
    for (std::size_t w = 0; w < tags.size(); ++w) {
      if (!set.validates[i] || set.tags.find(tags[w]) >= 0) continue;
      if (set.unknown_tags++ == 0) {
        first = fmt::format("{} ({})", table.place(i, w), excerpt(tags[w]));
      }
    }
  }
  if (set.unknown_tags == 0) return;
  set.notes.push_back(
      fmt::format("words to validate on with a tag that no word to train on has: {}, the first at "
                  "{}; they count as wrong, and the loss leaves their sentences out",
                  set.unknown_tags, first));
}

}  // namespace

TaggedOptions table_options(const TaggerTextOptions& options) {
  TaggedOptions table = options.table;
  if (options.task == TagTask::kTag) return table;
  table.words = ConlluWords::kSurface;
  table.tags = options.joint ? TagUse::kRequired : TagUse::kNone;
  return table;
}

TaggedSentence as_seen(TaggedSentence sentence, TagTask task) {
  return task == TagTask::kSegment ? to_characters(sentence) : std::move(sentence);
}

TaggedSet read_tagged_set(const TaggerTextOptions& options, std::uint64_t seed) {
  if (options.train.empty()) {
    throw Error(ErrorCode::kUsage, "no sentences to train on", "name a file: --train FILE");
  }
  Table table;
  read_into(table, options.train, options);
  const std::size_t trains = table.sentences.size();
  if (trains == 0) {
    throw Error(ErrorCode::kEmptyInput, table.names[0] + ": expected words, got none",
                "name a file that holds sentences");
  }
  read_into(table, options.valid, options);
  const std::size_t all = table.sentences.size();
  TaggedSet set;
  std::optional<TagScheme> scheme = scheme_of(options.scheme);
  if (options.task == TagTask::kSegment) scheme = TagScheme::kBmes;
  if (options.scheme == SchemeChoice::kAuto && !scheme) {
    scheme = find_scheme(names_of(table, 0, trains));
  }
  require_spans(options, scheme);
  if (scheme && options.task == TagTask::kTag) {
    convert(table, 0, trains, *scheme, set.notes);
    convert(table, trains, all, *scheme, set.notes);
  }
  set.validates = split(trains, all, options, seed);
  // Of a set that is split, the sentences to train on say which tags there are.
  std::unordered_set<std::string> names;
  for (std::size_t i = 0; i < all; ++i) {
    if (set.validates[i]) continue;
    names.insert(table.sentences[i].tags.begin(), table.sentences[i].tags.end());
  }
  std::vector<std::string> sorted = LabelSet({names.begin(), names.end()}).names();
  require_difference(table, sorted);
  set.tags = TagSet(complete_tags(std::move(sorted), scheme), scheme);
  set.overview.push_back(tags_line(set.tags, options.task));
  count_unknown_tags(table, set);
  std::vector<bool> validates;
  for (std::size_t i = 0; i < all; ++i) {
    cut_into(set.sentences, std::move(table.sentences[i]), options.max_length, scheme);
    validates.resize(set.sentences.size(), set.validates[i]);
  }
  set.validates = std::move(validates);
  return set;
}

}  // namespace fovea
