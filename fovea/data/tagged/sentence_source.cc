// SPDX-License-Identifier: Apache-2.0
#include "fovea/data/tagged/sentence_source.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <utility>

#include "fovea/base/check.h"
#include "fovea/data/table/columns.h"
#include "fovea/text/utf8.h"

namespace fovea {

namespace {

// A word a line, with columns.
class ConllSource final : public SentenceSource {
 public:
  explicit ConllSource(SentenceLines lines) : lines_(std::move(lines)) {}

  bool next(TaggedSentence& sentence) override {
    for (Line line; !lines_.is_full(sentence) && lines_.next(sentence, line);) {
      if (is_empty_line(line.text)) {
        if (sentence.size() > 0) return true;
        continue;
      }
      if (lines_.options().comments && sentence.size() == 0 && line.text.starts_with('#')) continue;
      take(sentence, line);
    }
    return sentence.size() > 0 || !sentence.source.empty();
  }

 private:
  void take(TaggedSentence& sentence, const Line& line) {
    columns_of_line(line.text, columns_);
    for (std::string_view& column : columns_) {
      if (!is_empty_line(column)) column = trimmed(column);  // a word may be a blank
    }
    require_columns(line);
    const std::string_view word = columns_[word_];
    if (word == kDocumentWord && sentence.size() == 0) return lines_.has_columns(sentence);
    if (word.empty()) {
      lines_.fail(line, fmt::format("expected a word in column {}, got none", word_ + 1),
                  "write a word, or end the sentence by an empty line");
    }
    lines_.is_word(sentence, line, word);
    sentence.tags.resize(tags_.size());
    for (std::size_t n = 0; n < tags_.size(); ++n) {
      const std::string_view tag = columns_[tags_[n]];
      if (tag.empty() || tag.find_first_of(" \t") != std::string_view::npos) {
        lines_.fail(line,
                    fmt::format("expected a tag without blanks in column {}, got {}", tags_[n] + 1,
                                tag.empty() ? "none" : excerpt(tag)),
                    "write a tag; O is the usual one of a word that is no name");
      }
      sentence.tags[n].emplace_back(tag);
    }
  }

  // The first line says how many columns there are.
  void require_columns(const Line& line) {
    const TaggedOptions& o = lines_.options();
    if (count_ == 0) {
      first_line_ = line.number;
      count_ = columns_.size();
      word_ = static_cast<std::size_t>(o.word_column) - 1;
      require_column(line, word_, "--word-column", "the word");
      if (o.tags == TagUse::kNone) return;
      for (const index column : o.tag_column) {
        add_tag_column(line, column == 0 ? count_ - 1 : static_cast<std::size_t>(column) - 1);
      }
      return;
    }
    if (columns_.size() == count_) return;
    lines_.fail(line,
                fmt::format("expected {} column{}, as in line {}, got {}", count_,
                            count_ == 1 ? "" : "s", first_line_, columns_.size()),
                line.text.starts_with('#')
                    ? "if lines that begin with # are comments, say --comments"
                : o.tags == TagUse::kNone && line.text.find('\t') == std::string_view::npos
                    ? "give every word a line of its own; if each line is a sentence: --text"
                    : "give every word the same columns, between tabs or blanks");
  }

  void add_tag_column(const Line& line, std::size_t tag) {
    require_column(line, tag, "--tag-column", "the tag");
    if (std::find(tags_.begin(), tags_.end(), tag) != tags_.end()) {
      lines_.fail(
          line,
          fmt::format("expected tags in different columns, but {} is the last one, too", count_),
          "name each column once: --tag-column");
    }
    tags_.push_back(tag);
    if (tag != word_) return;
    if (count_ > 1) {
      lines_.fail(
          line,
          fmt::format("expected the tag in the last column, {}, but it is the word's", count_),
          "say which column is the tag's: --tag-column");
    }
    lines_.fail(line, "expected a tag beside the word, got the word alone",
                "write a tag in a second column; segmented lines are --format words");
  }

  void require_column(const Line& line, std::size_t column, std::string_view option,
                      std::string_view what) const {
    if (column < count_) return;
    lines_.fail(line,
                fmt::format("expected {} in column {}, got {} column{}", what, column + 1, count_,
                            count_ == 1 ? "" : "s"),
                fmt::format("say which column it is: {}", option));
  }

  SentenceLines lines_;
  std::vector<std::string_view> columns_;
  std::size_t count_ = 0, word_ = 0;
  std::vector<std::size_t> tags_;  // columns; none if tags are not read
  index first_line_ = 0;
};

}  // namespace

std::unique_ptr<SentenceSource> conll_source(SentenceLines lines) {
  return std::make_unique<ConllSource>(std::move(lines));
}

namespace {

// CoNLL-U (universaldependencies.org/format.html): ten columns, comments before a sentence, words
// "3", words of several ("3-4" before "3"), and empty nodes "3.1", which stand in no text.

constexpr std::size_t kColumns = 10, kForm = 1;
constexpr std::string_view kNumbering =
    "number the words of a sentence 1, 2, 3, ...; 3-4 stands before 3, and 3.1 behind it";

std::size_t column_of(ConlluColumn column) {
  switch (column) {
    case ConlluColumn::kUpos:
      return 3;
    case ConlluColumn::kXpos:
      return 4;
    case ConlluColumn::kFeats:
      return 5;
    case ConlluColumn::kDeprel:
      break;
  }
  return 7;
}

// "3", "3-4" or "3.1".
struct Id {
  index first = 0;
  char joint = 0;  // '-' or '.', or none
  index second = 0;
};

std::optional<index> take_number(std::string_view& text) {
  index number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || number < 0) return std::nullopt;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return number;
}

std::optional<Id> parse_id(std::string_view text) {
  Id id;
  if (text.starts_with('-')) return std::nullopt;
  const auto first = take_number(text);
  if (!first) return std::nullopt;
  id.first = *first;
  if (text.empty()) return id;
  id.joint = text.front();
  if (id.joint != '-' && id.joint != '.') return std::nullopt;
  text.remove_prefix(1);
  if (text.starts_with('-')) return std::nullopt;
  const auto second = take_number(text);
  if (!second || !text.empty()) return std::nullopt;
  id.second = *second;
  return id;
}

class ConlluSource final : public SentenceSource {
 public:
  explicit ConlluSource(SentenceLines lines) : lines_(std::move(lines)) {
    if (lines_.options().tags == TagUse::kNone) return;
    for (const ConlluColumn column : lines_.options().column) tags_.push_back(column_of(column));
  }

  bool next(TaggedSentence& sentence) override {
    last_ = covered_ = empties_ = 0;
    for (Line line; (is_inside() || !lines_.is_full(sentence)) && lines_.next(sentence, line);) {
      if (is_empty_line(line.text)) {
        require_whole(line);
        if (sentence.size() > 0) return true;
        last_ = covered_ = empties_ = 0;
        continue;
      }
      if (!is_inside() && line.text.starts_with('#')) continue;
      take(sentence, line);
      newest_ = line.number;
    }
    require_whole({.text = {}, .number = newest_});
    return sentence.size() > 0 || !sentence.source.empty();
  }

 private:
  // Whether a sentence has begun: by a word, a word of several or an empty node.
  bool is_inside() const { return last_ > 0 || covered_ > 0 || empties_ > 0; }

  void take(TaggedSentence& sentence, const Line& line) {
    require_tabs(line);
    columns_of_line(line.text, columns_);
    if (columns_.size() != kColumns) {
      lines_.fail(
          line, fmt::format("expected {} columns between tabs, got {}", kColumns, columns_.size()),
          line.text.starts_with('#') ? "comments stand before the first word of a sentence"
                                     : "files of other columns are --format conll");
    }
    const std::optional<Id> id = parse_id(columns_[0]);
    if (!id) {
      lines_.fail(
          line,
          fmt::format("expected a number such as 3, 3-4 or 3.1, got {}", excerpt(columns_[0])),
          kNumbering);
    }
    if (columns_[kForm].empty()) {
      lines_.fail(line, "expected a word in column 2, got none", "write the word");
    }
    if (id->joint == '.') return take_empty(sentence, line, *id);
    if (id->joint == '-') {
      take_range(sentence, line, *id);
    } else {
      take_word_line(sentence, line, *id);
    }
  }

  void require_tabs(const Line& line) const {
    if (line.text.find('\t') != std::string_view::npos) return;
    lines_.fail(line, fmt::format("expected {} columns between tabs, got no tab", kColumns),
                line.text.starts_with('#')
                    ? "comments stand before the first word of a sentence"
                    : "put a tab between columns, not blanks; or read columns between blanks by "
                      "--format conll --word-column 2 --tag-column 4");
  }

  void take_empty(TaggedSentence& sentence, const Line& line, const Id& id) {
    if (id.first != last_ || id.second != empties_ + 1) {
      lines_.fail(line,
                  fmt::format("expected the number {}.{} or {}, got {}", last_, empties_ + 1,
                              last_ + 1, columns_[0]),
                  kNumbering);
    }
    ++empties_;
    lines_.has_columns(sentence);
  }

  void take_range(TaggedSentence& sentence, const Line& line, const Id& id) {
    if (id.first != last_ + 1 || id.second < id.first || id.first <= covered_) {
      lines_.fail(line, fmt::format("expected the number {}, got {}", last_ + 1, columns_[0]),
                  kNumbering);
    }
    covered_ = id.second;
    if (lines_.options().words == ConlluWords::kSurface) {
      add(sentence, line);
    } else {
      lines_.has_columns(sentence);
    }
  }

  void take_word_line(TaggedSentence& sentence, const Line& line, const Id& id) {
    if (id.first != last_ + 1) {
      lines_.fail(line, fmt::format("expected the number {}, got {}", last_ + 1, columns_[0]),
                  kNumbering);
    }
    last_ = id.first;
    empties_ = 0;
    const bool inside = lines_.options().words == ConlluWords::kSurface && id.first <= covered_;
    if (inside) {
      lines_.has_columns(sentence);
    } else {
      add(sentence, line);
    }
  }

  void add(TaggedSentence& sentence, const Line& line) {
    lines_.is_word(sentence, line, columns_[kForm]);
    sentence.tags.resize(tags_.size());
    for (std::size_t n = 0; n < tags_.size(); ++n) {
      const std::string_view tag = columns_[tags_[n]];
      if (tag.empty()) {
        lines_.fail(line, fmt::format("expected a tag in column {}, got none", tags_[n] + 1),
                    "write _ where there is none");
      }
      sentence.tags[n].emplace_back(tag);
    }
  }

  // At the end of a sentence.
  void require_whole(const Line& line) const {
    if (covered_ <= last_) return;
    lines_.fail(line,
                fmt::format("expected the words up to {}, as 3-4 asks for 3 and 4, got {}",
                            covered_, last_),
                kNumbering);
  }

  SentenceLines lines_;
  std::vector<std::size_t> tags_;  // columns; none if tags are not read
  std::vector<std::string_view> columns_;
  index last_ = 0;     // number of the last word
  index covered_ = 0;  // up to which words are parts of one
  index empties_ = 0;  // behind the last word
  index newest_ = 0;   // line
};

}  // namespace

std::unique_ptr<SentenceSource> conllu_source(SentenceLines lines) {
  return std::make_unique<ConlluSource>(std::move(lines));
}

}  // namespace fovea
