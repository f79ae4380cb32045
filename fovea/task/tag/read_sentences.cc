// SPDX-License-Identifier: Apache-2.0
#include "fovea/task/tag/read_sentences.h"

#include <fmt/core.h>

#include <algorithm>
#include <iterator>
#include <utility>
#include <vector>

#include "fovea/base/check.h"
#include "fovea/base/error.h"
#include "fovea/base/machine.h"
#include "fovea/data/label_set.h"
#include "fovea/data/tagged/tagged_reader.h"
#include "fovea/task/tag/tagger.h"
#include "fovea/text/keyed_hash.h"
#include "fovea/text/utf8.h"

namespace fovea {

namespace {

TagScheme scheme_of_names(std::span<const TaggedSentence> sentences, std::size_t column,
                          TagScheme otherwise) {
  KeyedSet<std::string> names;
  for (const TaggedSentence& sentence : sentences) {
    names.insert(sentence.tags[column].begin(), sentence.tags[column].end());
  }
  return find_scheme(std::vector<std::string>(names.begin(), names.end())).value_or(otherwise);
}

// The first tag of a sentence that has to be repaired.
std::size_t first_broken(std::span<const ParsedTag> tags, TagScheme scheme) {
  const std::vector<ParsedTag> repaired =
      tags_of(spans_of(tags, scheme), static_cast<index>(tags.size()), scheme);
  return static_cast<std::size_t>(std::mismatch(tags.begin(), tags.end(), repaired.begin()).first -
                                  tags.begin());
}

ReadScheme read_as(std::span<const TaggedSentence> sentences, std::size_t column, TagScheme scheme,
                   const SchemePlaces& places) {
  TagTypes types;
  ReadScheme read{.scheme = scheme, .where = std::string(places.where)};
  for (std::size_t i = 0; i < sentences.size(); ++i) {
    std::vector<ParsedTag> parsed;
    for (const std::string& tag : sentences[i].tags[column]) {
      parsed.push_back(parse_tag(tag, scheme, types));
    }
    read.repairs += count_repairs(parsed, scheme);
    if (read.first.empty() && read.repairs.total() > 0) {
      read.first = places.place(i, first_broken(parsed, scheme));
    }
  }
  return read;
}

// Sentences and the files that they come from.
struct Table {
  std::vector<TaggedSentence> sentences = {};
  std::vector<std::string> names = {};
  std::vector<std::size_t> ends = {};     // the number of sentences up to the end of each file
  std::vector<std::string> columns = {};  // what the tag columns are called

  std::string place(std::size_t sentence, std::size_t word) const {
    const auto file = static_cast<std::size_t>(
        std::upper_bound(ends.begin(), ends.end(), sentence) - ends.begin());
    return fmt::format("{}:{}", names[file], sentences[sentence].lines[word]);
  }
};

// The end of a message about one of several columns.
std::string in_column(const Table& table, std::size_t column) {
  return table.columns.size() == 1 ? "" : fmt::format(" in column {}", table.columns[column]);
}

void require_columns_of_first_file(const Table& table, const std::vector<std::string>& columns,
                                   const std::string& name) {
  if (columns.size() == table.columns.size()) return;
  throw Error(
      ErrorCode::kOptionValue,
      fmt::format("{}: expected {} tag column{}, as in {}, got {}", name, table.columns.size(),
                  table.columns.size() == 1 ? "" : "s", table.names[0], columns.size()),
      "name as many by --tag-column (of CoNLL files) as by --column (of CoNLL-U)");
}

void read_into(Table& table, const std::vector<std::string>& files,
               const TaggerTextOptions& options) {
  for (const std::string& file : files) {
    const std::string name = name_of_input(file);
    const TaggedOptions reading = table_options(options);
    const std::vector<std::string> columns = tag_columns(format_of(name, reading), reading);
    if (table.names.empty()) table.columns = columns;
    require_columns_of_first_file(table, columns, name);
    std::vector<TaggedSentence> seen = read_as_seen(file, reading, options.task);
    table.sentences.insert(table.sentences.end(), std::make_move_iterator(seen.begin()),
                           std::make_move_iterator(seen.end()));
    table.names.push_back(name);
    table.ends.push_back(table.sentences.size());
  }
}

// The names of tags in the sentences for which `counts(i)`.
template <class Counts>
std::vector<std::string> names_of(const Table& table, std::size_t column, const Counts& counts) {
  KeyedSet<std::string> names;
  for (std::size_t i = 0; i < table.sentences.size(); ++i) {
    const std::vector<std::string>& tags = table.sentences[i].tags[column];
    if (counts(i)) names.insert(tags.begin(), tags.end());
  }
  return LabelSet({names.begin(), names.end()}).names();
}

// Converts a column of the sentences `begin` to `end`, and says what they were.
void convert(Table& table, std::size_t begin, std::size_t end, std::size_t column, TagScheme to,
             std::vector<std::string>& notes) {
  if (begin == end) return;
  const auto sentences = std::span(table.sentences).subspan(begin, end - begin);
  const std::string where = in_column(table, column);
  const ReadScheme from =
      read_scheme(sentences, column, to,
                  {.place = [&](std::size_t i, std::size_t w) { return table.place(begin + i, w); },
                   .hint = "correct the tag, or take tags as they are: --scheme none",
                   .where = where});
  for (TaggedSentence& sentence : sentences) {
    sentence.tags[column] = convert_tags(sentence.tags[column], from.scheme, to);
  }
  const std::string_view whose = begin == 0 ? "" : "of --valid: ";
  if (from.repairs.total() > 0) {
    notes.push_back(fmt::format("{}{}; they are repaired", whose, broken_tags(from)));
  }
  if (from.scheme != to) {
    notes.push_back(fmt::format("{}tags of the scheme {}{} are converted to {}", whose,
                                to_string(from.scheme), where, to_string(to)));
  }
}

// The place of the first of these words.
template <class Wanted>
std::string first_place(const Table& table, std::size_t end, std::size_t column,
                        const Wanted& wanted) {
  for (std::size_t i = 0; i < end; ++i) {
    const std::vector<std::string>& tags = table.sentences[i].tags[column];
    const auto found = std::find_if(tags.begin(), tags.end(), wanted);
    if (found == tags.end()) continue;
    return fmt::format("{} ({})", table.place(i, static_cast<std::size_t>(found - tags.begin())),
                       excerpt(*found));
  }
  return {};
}

// A mistyped tag would hide the scheme of all others.
void note_almost_scheme(const Table& table, std::size_t trains, std::size_t column,
                        std::span<const std::string> names, std::vector<std::string>& notes) {
  for (const TagScheme scheme : {TagScheme::kBio, TagScheme::kBioes, TagScheme::kBmes}) {
    const auto is_other = [&](const std::string& name) { return !is_tag(name, scheme); };
    const auto begins = std::count_if(names.begin(), names.end(), [&](const std::string& name) {
      return name.starts_with("B-") && is_tag(name, scheme);
    });
    const auto others = std::count_if(names.begin(), names.end(), is_other);
    if (begins == 0 || 3 * others > std::ssize(names)) continue;
    const std::string_view of_scheme = to_string(scheme);
    notes.push_back(fmt::format(
        "tags{} look like the scheme {} but for {}: they are taken as they are, each for a word "
        "alone; correct it, or say --scheme none",
        in_column(table, column), of_scheme, first_place(table, trains, column, is_other)));
    return;
  }
}

using Schemes = std::vector<std::optional<TagScheme>>;  // of the columns

Schemes find_schemes(const Table& table, std::size_t trains, const TaggerTextOptions& options,
                     std::vector<std::string>& notes) {
  const std::size_t columns = table.columns.size();
  if (options.task == TagTask::kSegment) return {TagScheme::kBmes};
  require_one_or_each("--scheme", options.scheme.size(), columns);
  Schemes schemes;
  for (std::size_t c = 0; c < columns; ++c) {
    const SchemeChoice choice = scheme_of_column(options, c);
    schemes.push_back(scheme_of(choice));
    if (choice != SchemeChoice::kAuto) continue;
    const auto names = names_of(table, c, [&](std::size_t i) { return i < trains; });
    schemes.back() = find_scheme(names);
    if (!schemes.back()) note_almost_scheme(table, trains, c, names, notes);
  }
  return schemes;
}

// Long sentences in pieces, each with tags that keep to the scheme.
void cut_into(std::vector<TaggedSentence>& all, TaggedSentence sentence, index most,
              const Schemes& schemes) {
  if (sentence.size() <= most) return all.push_back(std::move(sentence));
  const auto part = [](const auto& values, WordRange range) {
    return std::vector(values.begin() + range.begin, values.begin() + range.end);
  };
  for (const WordRange range : pieces_of(sentence.size(), most)) {
    TaggedSentence& piece = all.emplace_back();
    piece.words = part(sentence.words, range);
    piece.lines = part(sentence.lines, range);
    for (std::size_t c = 0; c < schemes.size(); ++c) {
      std::vector<std::string>& tags = piece.tags.emplace_back(part(sentence.tags[c], range));
      if (schemes[c]) tags = convert_tags(tags, *schemes[c], *schemes[c]);
    }
  }
}

std::string tags_line(const TagSet& tags, TagTask task, const std::string& where) {
  if (task == TagTask::kSegment && tags.size() <= 4) return "tags: B, M, E, S of characters";
  constexpr index kMostListed = 20;
  std::string line = fmt::format("tags{}: {}, {}", where, tags.size(),
                                 tags.scheme() ? fmt::format("scheme {}", to_string(*tags.scheme()))
                                               : "each for a word alone");
  for (index k = 0; k < std::min(kMostListed, tags.size()); ++k) {
    line += (k == 0 ? "; " : ", ") + escape_text(tags.names()[static_cast<std::size_t>(k)]);
  }
  return tags.size() > kMostListed ? line + ", ..." : line;
}

void require_difference(const Table& table, const std::vector<std::string>& names,
                        const std::string& where) {
  if (names.size() > 1) return;
  throw Error(ErrorCode::kInputTooSmall,
              fmt::format("{}: every tag to train on{} is {}: at least two are needed",
                          table.names[0], where, excerpt(names[0])),
              "add sentences with other tags, or say which column has them: --tag-column (of "
              "CoNLL-U --column)");
}

void require_spans(const TaggerTextOptions& options, const Schemes& schemes) {
  const bool marks = std::any_of(schemes.begin(), schemes.end(),
                                 [](const auto& scheme) { return scheme.has_value(); });
  if (options.metric != TaggerMetric::kSpanF1 || marks) return;
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

// Counts the unknown tags of one column.
void count_unknown_tags(const Table& table, std::size_t column, TaggedSet& set) {
  std::string first;
  index count = 0;
  for (std::size_t i = 0; i < table.sentences.size(); ++i) {
    const std::vector<std::string>& tags = table.sentences[i].tags[column];
    for (std::size_t w = 0; w < tags.size(); ++w) {
      if (!set.validates[i] || set.tags[column].find(tags[w]) >= 0) continue;
      if (count++ == 0) {
        first = fmt::format("{} ({})", table.place(i, w), excerpt(tags[w]));
      }
    }
  }
  if (count == 0) return;
  set.unknown_tags += count;
  set.notes.push_back(
      fmt::format("words to validate on with a tag{} that no word to train on has: {}, the first "
                  "at {}; they count as wrong, and the loss leaves their sentences out",
                  in_column(table, column), count, first));
}

// The loss leaves out sentences with unknown tags; it needs one that is left.
void require_validation_loss(const Table& table, const TaggerTextOptions& options, TaggedSet& set) {
  if (set.unknown_tags == 0) return;
  for (std::size_t i = 0; i < table.sentences.size(); ++i) {
    bool known = bool{set.validates[i]};
    for (std::size_t c = 0; known && c < set.tags.size(); ++c) {
      const std::vector<std::string>& tags = table.sentences[i].tags[c];
      known = std::all_of(tags.begin(), tags.end(),
                          [&](const std::string& tag) { return set.tags[c].find(tag) >= 0; });
    }
    if (known) return;
  }
  constexpr std::string_view kAll =
      "each sentence to validate on has a tag that no word to train on has";
  if (options.metric == TaggerMetric::kLoss) {
    throw Error(ErrorCode::kInputTooSmall, fmt::format("--metric loss: {}", kAll),
                "add sentences, or choose --metric accuracy");
  }
  set.notes.push_back(fmt::format("{}: there is no validation loss, and 0 is shown for it", kAll));
}

void cut_all(Table table, index most, const Schemes& schemes, TaggedSet& set) {
  std::vector<bool> validates;
  index cut = 0;
  for (std::size_t i = 0; i < table.sentences.size(); ++i) {
    cut += table.sentences[i].size() > most ? 1 : 0;
    cut_into(set.sentences, std::move(table.sentences[i]), most, schemes);
    validates.resize(set.sentences.size(), set.validates[i]);
  }
  set.validates = std::move(validates);
  if (cut == 0) return;
  set.notes.push_back(fmt::format(
      "sentences longer than --max-length ({}): {}; they are read in pieces", most, cut));
}

}  // namespace

ReadScheme read_scheme(std::span<const TaggedSentence> sentences, std::size_t column,
                       TagScheme otherwise, const SchemePlaces& places) {
  const TagScheme scheme = scheme_of_names(sentences, column, otherwise);
  for (std::size_t i = 0; i < sentences.size(); ++i) {
    const std::vector<std::string>& tags = sentences[i].tags[column];
    for (std::size_t w = 0; w < tags.size(); ++w) {
      if (is_tag(tags[w], scheme)) continue;
      throw Error(ErrorCode::kInputFormat,
                  fmt::format("{}: expected a tag of the scheme {}{}, got {}", places.place(i, w),
                              to_string(scheme), places.where, excerpt(tags[w])),
                  std::string(places.hint));
    }
  }
  ReadScheme read = read_as(sentences, column, scheme, places);
  if (scheme != TagScheme::kBio || read.repairs.total() == 0) return read;
  ReadScheme other = read_as(sentences, column, TagScheme::kIob1, places);
  return other.repairs.total() < read.repairs.total() ? other : read;
}

std::string broken_tags(const ReadScheme& read) {
  const TagRepairs& repairs = read.repairs;
  const index begins = repairs.orphans + repairs.needless;
  return fmt::format(
      "tags that break the scheme {}{}: {} in {} sentence{}, the first at {} ({} span{} not begin "
      "as it says, {} {} not end so)",
      to_string(read.scheme), read.where, repairs.total(), repairs.sentences,
      repairs.sentences == 1 ? "" : "s", read.first, begins, begins == 1 ? " does" : "s do",
      repairs.unclosed, repairs.unclosed == 1 ? "does" : "do");
}

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

std::vector<TaggedSentence> read_as_seen(const std::string& file, const TaggedOptions& options,
                                         TagTask task) {
  constexpr double kOfCharacter = 2 * sizeof(std::string) + sizeof(index);  // itself, tag and line
  constexpr double kBetweenChecks = 64 << 20;
  std::vector<TaggedSentence> all;
  double unchecked = 0;
  for (TaggedSentence& sentence : read_tagged(file, options)) {
    if (task == TagTask::kSegment) {
      for (const std::string& word : sentence.words) {
        unchecked += kOfCharacter * static_cast<double>(word.size());
      }
    }
    if (unchecked >= kBetweenChecks) {
      require_memory(name_of_input(file) + ": its characters", std::exchange(unchecked, 0),
                     "use less text, or a machine with more memory");
    }
    TaggedSentence seen = as_seen(std::move(sentence), task);
    if (seen.size() > 0) all.push_back(std::move(seen));
  }
  return all;
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
  const Schemes schemes = find_schemes(table, trains, options, set.notes);
  require_spans(options, schemes);
  // Characters are tagged by ourselves.
  for (std::size_t c = 0; c < schemes.size() && options.task == TagTask::kTag; ++c) {
    if (!schemes[c]) continue;
    convert(table, 0, trains, c, *schemes[c], set.notes);
    convert(table, trains, all, c, *schemes[c], set.notes);
  }
  set.validates = split(trains, all, options, seed);
  for (std::size_t c = 0; c < schemes.size(); ++c) {
    // In a set that is split, the sentences to train on decide which tags there are.
    std::vector<std::string> names =
        names_of(table, c, [&](std::size_t i) { return !set.validates[i]; });
    require_difference(table, names, in_column(table, c));
    set.tags.emplace_back(complete_tags(std::move(names), schemes[c]), schemes[c]);
    const TagSet& tags = set.tags.back();
    const std::string alike = names_alike(tags.scheme() ? tags.types().names() : tags.names());
    if (!alike.empty()) {
      set.notes.push_back(
          fmt::format("tags{} that differ only in case or in blanks are tags of "
                      "their own: {}",
                      in_column(table, c), alike));
    }
    set.overview.push_back(tags_line(set.tags.back(), options.task, in_column(table, c)));
    count_unknown_tags(table, c, set);
  }
  require_validation_loss(table, options, set);
  cut_all(std::move(table), options.max_length, schemes, set);
  return set;
}

}  // namespace fovea
