// SPDX-License-Identifier: Apache-2.0
// Sentences of words with tags, one after another, from CoNLL columns, CoNLL-U or segmented lines,
// packed or not.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "fovea/base/byte_stream.h"
#include "fovea/base/types.h"
#include "fovea/data/tagged/tagged_options.h"

namespace fovea {

/// A line of the file, as it was.
struct SourceLine {
  std::string text;   ///< without its LF
  index word = -1;    ///< whose line it is; -1: of none
  bool ended = true;  ///< by LF
  /// Whether it has columns: a word, or a part or a whole of some, or -DOCSTART-.
  bool has_columns = false;
};

struct TaggedSentence {
  std::vector<std::string> words;
  std::vector<std::vector<std::string>> tags;  ///< [tag columns], [words] each; or none
  std::vector<index> lines;                    ///< [words], from 1
  std::vector<SourceLine> source;  ///< with keep_source: all lines behind the sentence before

  index size() const { return static_cast<index>(words.size()); }
  void clear() { *this = {}; }
};

class SentenceSource;

/// Takes as much memory as the longest sentence, and a piece of the file.
class TaggedReader {
 public:
  /// Throws kOptionValue; kEmptyInput; what open_text throws.
  TaggedReader(const std::string& file, const TaggedOptions& options);
  TaggedReader(std::unique_ptr<ByteStream> stream, const std::string& name,
               const TaggedOptions& options);
  ~TaggedReader();

  /// Returns false at the end. With keep_source what stands behind the last sentence comes as one
  /// of no words, and so do each 1,000 lines without a word, or 1 MiB of them; without, every
  /// sentence has a word. Throws kInputFormat, "FILE:LINE: ...", and kEncoding.
  bool next(TaggedSentence& sentence);

  /// "FILE:LINE" of a word.
  std::string place(const TaggedSentence& sentence, index word) const;
  const std::string& name() const { return name_; }

 private:
  std::string name_;
  std::unique_ptr<SentenceSource> source_;
};

/// All sentences of a file. Throws also kEmptyInput if there are none, kOutOfMemory.
std::vector<TaggedSentence> read_tagged(const std::string& file, const TaggedOptions& options);

/// The lines of the sentence with columns added to each that has columns: columns[c] [words] beside
/// words, `other` beside the rest. Where a line has blanks between its columns, a blank comes
/// before each new one, else a tab.
std::string with_columns(const TaggedSentence& sentence,
                         std::span<const std::vector<std::string>> columns, std::string_view other);

}  // namespace fovea
