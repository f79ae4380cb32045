// SPDX-License-Identifier: Apache-2.0
// Sentences of words with tags, one after another, from CoNLL columns, CoNLL-U or segmented
// lines, packed or not.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "fovea/base/bytes.h"
#include "fovea/base/fields.h"
#include "fovea/base/types.h"

namespace fovea {

// How a file of sentences with a tag for each word is to be read.

enum class TaggedFormat {
  kAuto,    ///< by the name: .conllu, .seg; else conll
  kConll,   ///< a word a line, with columns between tabs or blanks; an empty line ends a sentence
  kConllu,  ///< Universal Dependencies: ten columns between tabs
  kWords,   ///< a sentence a line, words between white space, no tags
};
inline constexpr EnumName<TaggedFormat> kTaggedFormatNames[] = {{TaggedFormat::kAuto, "auto"},
                                                                {TaggedFormat::kConll, "conll"},
                                                                {TaggedFormat::kConllu, "conllu"},
                                                                {TaggedFormat::kWords, "words"}};
inline std::span<const EnumName<TaggedFormat>> enum_names(TaggedFormat) {
  return kTaggedFormatNames;
}

/// Which column of CoNLL-U is the tag.
enum class ConlluColumn { kUpos, kXpos, kFeats, kDeprel };
inline constexpr EnumName<ConlluColumn> kConlluColumnNames[] = {{ConlluColumn::kUpos, "upos"},
                                                                {ConlluColumn::kXpos, "xpos"},
                                                                {ConlluColumn::kFeats, "feats"},
                                                                {ConlluColumn::kDeprel, "deprel"}};
inline std::span<const EnumName<ConlluColumn>> enum_names(ConlluColumn) {
  return kConlluColumnNames;
}

/// The lines of CoNLL-U that count as words.
enum class ConlluWords {
  kSyntactic,  ///< each line with a whole number: "de" and "el" of "del"
  kSurface,    ///< as the text has it: "del"
};

enum class TagUse {
  kRequired,
  kNone,  ///< only words are read
};

/// The most tag columns of a file in the format conll.
inline constexpr index kMostTagColumns = 10000;

struct TaggedOptions {
  TaggedFormat format = TaggedFormat::kAuto;
  index word_column = 1;  ///< conll: from 1
  /// conll: from 1; 0: the last one. With several columns, words have a tag in each.
  std::vector<index> tag_column = {0};
  std::vector<ConlluColumn> column = {ConlluColumn::kUpos};  ///< conllu, as well
  bool comments = false;  ///< conll: lines before a sentence that begin with # are no words

  // The caller sets these by its use of the words; users are not asked for them.
  TagUse tags = TagUse::kRequired;
  ConlluWords words = ConlluWords::kSyntactic;
  bool keep_source = false;                          ///< TaggedSentence::source is filled
  std::size_t longest_line = std::size_t{16} << 20;  ///< bytes
  index longest_sentence = 1000000;                  ///< words

  template <class Visitor>
  void visit_fields(Visitor&& visit) {
    visit(
        "format", format,
        "format of the sentences; auto: by the name conllu (.conllu) or words (.seg), else conll");
    visit("word_column", word_column, "--format conll: column of the word, from 1",
          {.range = ValueRange::in(1, kMostTagColumns)});
    visit("tag_column", tag_column,
          "--format conll: column of the tag, from 1; 0: the last one; with commas several columns",
          {.range = ValueRange::in(0, kMostTagColumns, "the last")});
    visit("column", column, "--format conllu: column of the tag; with commas several");
    visit("comments", comments,
          "--format conll: lines before a sentence that begin with # are comments");
  }
};

/// Throws kOptionValue, which names the option, for what does not fit together.
void check_options(const TaggedOptions& options);

/// The format of a file of this name.
TaggedFormat format_of(std::string_view name, const TaggedOptions& options);

/// The tag columns of a file of this format as users call them, "2", "last" or "upos"; of kWords
/// those of kConll.
std::vector<std::string> tag_columns(TaggedFormat format, const TaggedOptions& options);

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

// Words as characters with tags that say where in a word each is: what a segmenter learns.

/// The characters of UTF-8 text; white space is none.
std::vector<std::string> characters_of(std::string_view text);

/// The sentence of the characters of these words, with the tags S (a word of one character), B, M
/// and E (the first, the middle, the last ones of a word); where words have tags (of one column),
/// "B-NOUN" and so on. A character is on the line of its word; there is no source. Words of white
/// space are left out.
TaggedSentence to_characters(const TaggedSentence& words);

// Tells running text from words a line with columns, where nobody has said which a file is.

enum class LineForm {
  kColumns,  ///< a word a line, alone or with columns
  kText,     ///< a sentence a line
};

/// The signs by which columns are told from words.
struct ColumnSigns {
  std::function<bool(std::string_view)> is_tag;  ///< whether a last column says so
  bool comments = false;                         ///< lines that begin with # say nothing
};

/// The form that the first lines show; nothing as long as more lines could change it. `is_all`: no
/// more follow. A tab, a word alone in the first line, or two lines of as many words that end with
/// a tag make columns. Other lines of several words make text. Only lines up to an empty one count,
/// unless all of these end with a tag.
std::optional<LineForm> form_of_lines(std::string_view lines, bool is_all,
                                      const ColumnSigns& signs);

/// Reads as far as is needed to know the form, and gives what was read back: `stream` becomes one
/// of all bytes. Throws as it does.
LineForm find_line_form(std::unique_ptr<ByteStream>& stream, const ColumnSigns& signs);

}  // namespace fovea
