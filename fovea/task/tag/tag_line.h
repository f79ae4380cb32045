// SPDX-License-Identifier: Apache-2.0
// The line for a sentence that was tagged.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "fovea/data/tagged/tagged_reader.h"
#include "fovea/task/tag/tag_predictor.h"
#include "fovea/task/tag/tagger.h"

namespace fovea {

/// A word that a segmenter found: bytes `begin` to `end` of the line.
struct FoundWord {
  std::size_t begin = 0, end = 0;
  std::string tag = {};  ///< of a segmenter that has learned tags, too

  bool operator==(const FoundWord&) const = default;
};

/// The words of a line by the tags of its characters (characters_of()). White space ends a word,
/// and none begins within a grapheme cluster, whatever the tags say.
std::vector<FoundWord> words_of(std::string_view line, const TagSet& tags,
                                const TaggedByModel& found);

/// The line, each of its characters as it was, with a blank before each word that does not stand at
/// the front or behind white space, and "/TAG" behind one that has a tag.
std::string segmented(std::string_view line, std::span<const FoundWord> words);

/// The words of plain text as a sentence of one column.
TaggedSentence sentence_of(std::string_view text, WordSplit split);

struct TagLineOptions {
  TaggedFormat format = TaggedFormat::kConll;
  TagProbabilities probabilities = TagProbabilities::kNo;  ///< kYes: a column behind each of tags
};

/// The tags of a column, and those that the model found.
struct TaggedColumn {
  const TagSet& tags;
  const TaggedByModel& found;
  std::string_view name = {};  ///< of one among several
};

/// The lines of a sentence with a column of tags for each of these. Beside lines of no word stands
/// O; of CoNLL-U _.
std::string tagged_lines(const TaggedSentence& sentence, std::span<const TaggedColumn> columns,
                         const TagLineOptions& options);

/// An object in one line: "words", "tags"; with a scheme "spans", each with "type", "begin", "end"
/// and "text"; "probabilities" of the tags, if there are any. With several columns "words" and
/// "columns", each with "column", its name, and the rest.
std::string tagged_json(const TaggedSentence& sentence, std::span<const TaggedColumn> columns);
/// The object of a segmenter: "text", "words", "tags" if it has learned them; "probabilities" of
/// the tags of the characters.
std::string segmented_json(std::string_view line, const TagSet& tags, const TaggedByModel& found);

}  // namespace fovea
