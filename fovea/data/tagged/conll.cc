// SPDX-License-Identifier: Apache-2.0
// A word a line, with columns.
#include <algorithm>
#include <utility>

#include "fovea/base/check.h"
#include "fovea/data/table/columns.h"
#include "fovea/data/tagged/sentence_source.h"
#include "fovea/text/utf8.h"

namespace fovea {

namespace {

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

}  // namespace fovea
