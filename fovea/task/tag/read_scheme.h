// SPDX-License-Identifier: Apache-2.0
// The scheme in which sentences are tagged.
#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <string>
#include <string_view>

#include "fovea/data/tagged/tagged_reader.h"
#include "fovea/metrics/tag_scheme.h"

namespace fovea {

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

}  // namespace fovea
