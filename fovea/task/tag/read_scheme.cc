// SPDX-License-Identifier: Apache-2.0
#include "fovea/task/tag/read_scheme.h"

#include <fmt/core.h>

#include <algorithm>
#include <vector>

#include "fovea/base/error.h"
#include "fovea/task/tag/tag_set.h"
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

}  // namespace fovea
