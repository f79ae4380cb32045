// SPDX-License-Identifier: Apache-2.0
// CoNLL-U (universaldependencies.org/format.html): ten columns, comments before a sentence, words
// "3", words of several ("3-4" before "3"), and empty nodes "3.1", which stand in no text.
#include <charconv>
#include <optional>
#include <utility>

#include "fovea/base/check.h"
#include "fovea/data/tagged/sentence_source.h"
#include "fovea/text/utf8.h"

namespace fovea {

namespace {

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
