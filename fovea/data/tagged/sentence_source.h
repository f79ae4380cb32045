// SPDX-License-Identifier: Apache-2.0
// How each format gives its sentences.
#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "fovea/base/machine.h"
#include "fovea/data/table/line_reader.h"
#include "fovea/data/tagged/tagged_reader.h"

namespace fovea {

/// The word of a line between documents, which is no word.
inline constexpr std::string_view kDocumentWord = "-DOCSTART-";

class SentenceSource {
 public:
  virtual ~SentenceSource() = default;
  /// See TaggedReader::next; `sentence` is empty.
  virtual bool next(TaggedSentence& sentence) = 0;
};

/// The lines of a file, checked and, if asked for, kept.
class SentenceLines {
 public:
  SentenceLines(std::unique_ptr<LineReader> lines, const TaggedOptions& options)
      : lines_(std::move(lines)), options_(options), memory_(new_memory()) {}

  /// The next line, without a CR at its end; it is kept as one of no word. Returns false at the
  /// end. Throws kOutOfMemory before a sentence takes more memory than there is.
  bool next(TaggedSentence& sentence, Line& line);
  /// Whether so many lines without a word are kept, or such long ones, that they are given as a
  /// sentence of none: a file may have any number of them.
  bool is_full(const TaggedSentence& sentence) const;
  /// Says that the line is that of a new word, or only that it has columns.
  void is_word(TaggedSentence& sentence, const Line& line, std::string_view word) const;
  void has_columns(TaggedSentence& sentence) const;

  [[noreturn]] void fail(const Line& line, const std::string& what, std::string_view hint) const;
  const TaggedOptions& options() const { return options_; }

 private:
  static GrowingMemory new_memory();

  std::unique_ptr<LineReader> lines_;
  const TaggedOptions options_;
  std::size_t bytes_ = 0;  // of the lines of the sentence
  GrowingMemory memory_;
};

/// Whether there is nothing but blanks and tabs.
bool is_empty_line(std::string_view text);
/// The columns of a line: between tabs, or where there are none between runs of blanks.
void columns_of_line(std::string_view text, std::vector<std::string_view>& columns);

std::unique_ptr<SentenceSource> conll_source(SentenceLines lines);
std::unique_ptr<SentenceSource> conllu_source(SentenceLines lines);
std::unique_ptr<SentenceSource> words_source(SentenceLines lines);

}  // namespace fovea
