// SPDX-License-Identifier: Apache-2.0
// The tagged sentences of a run: read, converted to their scheme, cut, and split into those to
// train on and those to validate.
#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "fovea/data/tagged/tagged_reader.h"
#include "fovea/metrics/tag_scheme.h"
#include "fovea/task/tag/settings.h"
#include "fovea/task/tag/tagger.h"

namespace fovea {

/// The scheme in which sentences are tagged.
struct ReadScheme {
  TagScheme scheme;
  TagRepairs repairs = {};  ///< the tags that break it
  std::string first = {};   ///< the place of the first tag that does
  std::string where = {};   ///< as in SchemePlaces
};

/// The words of errors about a tag that is not one of the scheme.
struct SchemePlaces {
  /// FILE:LINE of a word of a sentence.
  std::function<std::string(std::size_t sentence, std::size_t word)> place;
  std::string_view hint;
  std::string_view where = "";  ///< " in column 3", of one among several
};

/// The scheme of a tag column: that of find_scheme, or `otherwise` if it finds none. bio and iob1
/// have the same tags: of the two it is the one of which less has to be repaired, and of equal ones
/// bio. Throws kInputFormat for a tag that is none of the scheme.
ReadScheme read_scheme(std::span<const TaggedSentence> sentences, std::size_t column,
                       TagScheme otherwise, const SchemePlaces& places);

/// "tags that break the scheme bio: 3 in 2 sentences, the first at FILE:LINE", and which.
std::string broken_tags(const ReadScheme& read);

/// How files are read for this task: a segmenter reads words, with tags if it learns these, too.
TaggedOptions table_options(const TaggerTextOptions& options);

/// The sentence as the model of the task sees it: words, or characters.
TaggedSentence as_seen(TaggedSentence sentence, TagTask task);

/// The sentences of a file as the model of the task sees them, but for those in which it sees
/// nothing. Throws what TaggedReader throws; kOutOfMemory.
std::vector<TaggedSentence> read_as_seen(const std::string& file, const TaggedOptions& options,
                                         TagTask task);

struct TaggedSet {
  std::vector<TaggedSentence> sentences;  ///< the sentences of --train, then of --valid
  std::vector<bool> validates;            ///< [sentences]
  std::vector<TagSet> tags;               ///< of each tag column of the sentences to train on
  index unknown_tags = 0;                 ///< tags to validate on that are none of these
  std::vector<std::string> overview;      ///< a summary of the tags for people, a line each
  std::vector<std::string> notes;         ///< warnings about them
};

/// Reads all files. Throws what TaggedReader throws; kUsage without a file to train on;
/// kInputFormat, "FILE:LINE: ...", for a tag that is none of a scheme; kOptionValue for files with
/// different numbers of tag columns, or another number of schemes; kInputTooSmall if all tags of a
/// column are the same.
TaggedSet read_tagged_set(const TaggerTextOptions& options, std::uint64_t seed);

}  // namespace fovea
