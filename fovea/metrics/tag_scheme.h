// SPDX-License-Identifier: Apache-2.0
// Tags that mark spans of tokens, such as names or words: a letter that says where in a span the
// token is, and after a '-' the type of the span ("B-person"). Tags without a type ("B") have the
// type "".
//
//   iob1   I inside; B only where a span follows one of its type directly (Ramshaw, Marcus 1995,
//          "Text chunking using transformation-based learning")
//   bio    B the first, I the others (IOB2: Tjong Kim Sang, Veenstra 1999, "Representing text
//          chunks")
//   bioes  B the first, I between, E the last, S a span of one token
//   bmes   the same with M for I; as segmenters of Chinese write it, without O
//
// and O outside of all spans.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "fovea/base/fields.h"
#include "fovea/base/types.h"
#include "fovea/text/keyed_hash.h"

namespace fovea {

enum class TagScheme : std::uint8_t { kIob1, kBio, kBioes, kBmes };

inline constexpr EnumName<TagScheme> kTagSchemeNames[] = {{TagScheme::kIob1, "iob1"},
                                                          {TagScheme::kBio, "bio"},
                                                          {TagScheme::kBioes, "bioes"},
                                                          {TagScheme::kBmes, "bmes"}};
inline std::span<const EnumName<TagScheme>> enum_names(TagScheme) { return kTagSchemeNames; }

/// Where in a span a token is. M is kInside.
enum class TagPart : std::uint8_t { kOutside, kBegin, kInside, kEnd, kSingle };

/// Types by number, in the order in which they were first asked for.
class TagTypes {
 public:
  /// The number of a type, which is added if it is new.
  std::int32_t number_of(std::string_view name);
  const std::vector<std::string>& names() const { return names_; }
  index size() const { return static_cast<index>(names_.size()); }

 private:
  std::vector<std::string> names_;
  KeyedMap<std::string, std::int32_t> numbers_;
};

struct ParsedTag {
  TagPart part = TagPart::kOutside;
  std::int32_t type = -1;  ///< of TagTypes; -1 with kOutside

  bool operator==(const ParsedTag&) const = default;
};

/// Throws Error(kInputFormat) for what is no tag of the scheme: "the tag 'X-per' is not one of bio:
/// O, B-type, I-type". The caller adds where.
ParsedTag parse_tag(std::string_view tag, TagScheme scheme, TagTypes& types);
/// Whether it would not throw.
bool is_tag(std::string_view tag, TagScheme scheme);
std::string tag_name(const ParsedTag& tag, TagScheme scheme, const TagTypes& types);

/// Tokens [begin, end) are a span.
struct TagSpan {
  index begin = 0, end = 0;
  std::int32_t type = 0;

  auto operator<=>(const TagSpan&) const = default;
};

/// How spans are read from tags that may break their scheme.
enum class SpanReading : std::uint8_t {
  /// As conlleval does, and seqeval by default: every tag but O is in a span. A span begins at B or
  /// S, after E, S or O, and where the type changes.
  kLenient,
  /// As seqeval's mode "strict": what is not exactly a span of the scheme is none.
  kStrict
};

/// The spans of one sentence, ascending. With kLenient the scheme does not matter.
std::vector<TagSpan> spans_of(std::span<const ParsedTag> tags, TagScheme scheme,
                              SpanReading reading = SpanReading::kLenient);

/// The tags of spans in `length` tokens. Spans are ascending and do not overlap.
std::vector<ParsedTag> tags_of(std::span<const TagSpan> spans, index length, TagScheme scheme);

/// Counts of the repairs in tags that break their scheme, by kind.
struct TagRepairs {
  index orphans = 0;    ///< spans that begin with I, M or E: now they begin as the scheme says
  index unclosed = 0;   ///< spans of bioes or bmes without their last tag: now they have it
  index needless = 0;   ///< iob1: spans that begin with B where I would do
  index sentences = 0;  ///< sentences with any of these

  index total() const { return orphans + unclosed + needless; }
  TagRepairs& operator+=(const TagRepairs& other);
  bool operator==(const TagRepairs&) const = default;
};

/// Counts the repairs that a sentence needs; the repaired tags are tags_of(spans_of(tags)).
TagRepairs count_repairs(std::span<const ParsedTag> tags, TagScheme scheme);

/// The tags of one sentence in another scheme (or repaired, in the same): those of the spans that
/// kLenient reads. Throws as parse_tag.
std::vector<std::string> convert_tags(std::span<const std::string> tags, TagScheme from,
                                      TagScheme to, TagRepairs* repairs = nullptr);

/// Which paths a scheme allows through a list of K tags: [a K + b], b right after a; the first tag;
/// the last tag. They are what a CRF takes (kernel/crf.h).
struct TagRules {
  std::vector<std::uint8_t> transitions, start, end;
};
TagRules rules_of(std::span<const ParsedTag> tags, TagScheme scheme);

/// Whether a sentence keeps to its scheme.
bool keeps_scheme(std::span<const ParsedTag> tags, TagScheme scheme);

}  // namespace fovea
