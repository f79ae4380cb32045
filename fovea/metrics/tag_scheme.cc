// SPDX-License-Identifier: Apache-2.0
#include "fovea/metrics/tag_scheme.h"

#include <algorithm>
#include <optional>

#include "fovea/base/check.h"
#include "fovea/base/words.h"

namespace fovea {

namespace {

/// The letters of a scheme in the order of TagPart; a blank: it has none.
std::string_view letters_of(TagScheme scheme) {
  switch (scheme) {
    case TagScheme::kIob1:
    case TagScheme::kBio:
      return "OBI  ";
    case TagScheme::kBioes:
      return "OBIES";
    case TagScheme::kBmes:
      break;
  }
  return "OBMES";
}

struct TagText {
  TagPart part;
  std::string_view type;
};

std::optional<TagText> read_tag(std::string_view tag, TagScheme scheme) {
  const std::string_view letters = letters_of(scheme);
  if (tag.empty() || tag[0] == ' ') return std::nullopt;
  const std::size_t at = letters.find(tag[0]);
  if (at == std::string_view::npos) return std::nullopt;
  const auto part = static_cast<TagPart>(at);
  if (tag.size() == 1) return TagText{part, {}};
  // "O-type" and "B-" are no tags, nor is "Bperson".
  if (part == TagPart::kOutside || tag[1] != '-' || tag.size() == 2) return std::nullopt;
  return TagText{part, tag.substr(2)};
}

bool has_ends(TagScheme scheme) {
  return scheme == TagScheme::kBioes || scheme == TagScheme::kBmes;
}

/// Whether a span goes on after this part.
bool is_open(TagPart part) { return part == TagPart::kBegin || part == TagPart::kInside; }

constexpr ParsedTag kOutsideTag{};

}  // namespace

std::int32_t TagTypes::number_of(std::string_view name) {
  const auto [at, is_new] =
      numbers_.try_emplace(std::string(name), static_cast<std::int32_t>(names_.size()));
  if (is_new) names_.emplace_back(name);
  return at->second;
}

ParsedTag parse_tag(std::string_view tag, TagScheme scheme, TagTypes& types) {
  const std::optional<TagText> read = read_tag(tag, scheme);
  if (!read) {
    std::string known = "O";
    for (const char letter : letters_of(scheme).substr(1)) {
      if (letter != ' ') known += fmt::format(", {0} or {0}-TYPE", letter);
    }
    fail(ErrorCode::kInputFormat,
         Hint{"name the scheme that the tags are in, or take the tags as they are"},
         "the tag {} is not one of {}: {}", printable(tag), to_string(scheme), known);
  }
  if (read->part == TagPart::kOutside) return {};
  return {read->part, types.number_of(read->type)};
}

bool is_tag(std::string_view tag, TagScheme scheme) { return read_tag(tag, scheme).has_value(); }

std::string tag_name(const ParsedTag& tag, TagScheme scheme, const TagTypes& types) {
  std::string name(1, letters_of(scheme)[static_cast<std::size_t>(tag.part)]);
  if (tag.part == TagPart::kOutside) return name;
  const std::string& type = types.names()[static_cast<std::size_t>(tag.type)];
  return type.empty() ? name : name + '-' + type;
}

namespace {

// ---- reading spans

/// conlleval's rules: whether a span ends between two tags, and whether one begins at the second.
bool ends_between(const ParsedTag& before, const ParsedTag& tag) {
  if (before.part == TagPart::kOutside) return false;
  if (before.part == TagPart::kEnd || before.part == TagPart::kSingle) return true;
  return tag.part == TagPart::kBegin || tag.part == TagPart::kSingle ||
         tag.part == TagPart::kOutside || before.type != tag.type;
}
bool begins_between(const ParsedTag& before, const ParsedTag& tag) {
  if (tag.part == TagPart::kOutside) return false;
  return before.part == TagPart::kOutside || ends_between(before, tag);
}

std::vector<TagSpan> lenient_spans(std::span<const ParsedTag> tags) {
  std::vector<TagSpan> spans;
  ParsedTag before = kOutsideTag;
  index begin = 0;
  for (std::size_t n = 0; n <= tags.size(); ++n) {
    const ParsedTag& tag = n < tags.size() ? tags[n] : kOutsideTag;
    const auto at = static_cast<index>(n);
    if (ends_between(before, tag)) spans.push_back({begin, at, before.type});
    if (begins_between(before, tag)) begin = at;
    before = tag;
  }
  return spans;
}

/// Whether a span may begin at `tag`, and whether it goes on there, as seqeval has it.
bool begins_strictly(const ParsedTag& before, const ParsedTag& tag, TagScheme scheme) {
  if (scheme != TagScheme::kIob1) {
    return tag.part == TagPart::kBegin || tag.part == TagPart::kSingle;
  }
  if (tag.part == TagPart::kInside) {
    return before.part != TagPart::kInside || before.type != tag.type;
  }
  return tag.part == TagPart::kBegin && before.part != TagPart::kOutside && before.type == tag.type;
}
bool goes_on_strictly(const ParsedTag& before, const ParsedTag& tag) {
  return is_open(before.part) && before.type == tag.type &&
         (tag.part == TagPart::kInside || tag.part == TagPart::kEnd);
}
/// Whether a span whose last tag is `before` is whole, if `tag` follows.
bool ends_strictly(const ParsedTag& before, const ParsedTag& tag, TagScheme scheme) {
  if (has_ends(scheme)) return before.part == TagPart::kEnd || before.part == TagPart::kSingle;
  // iob1: B of another type cannot follow.
  return scheme == TagScheme::kBio || before.part != TagPart::kBegin ||
         tag.part != TagPart::kBegin || before.type == tag.type;
}

std::vector<TagSpan> strict_spans(std::span<const ParsedTag> tags, TagScheme scheme) {
  std::vector<TagSpan> spans;
  const auto tag_at = [&](std::size_t n) { return n < tags.size() ? tags[n] : kOutsideTag; };
  ParsedTag before = kOutsideTag;
  for (std::size_t n = 0; n < tags.size();) {
    std::size_t end = n + 1;
    if (begins_strictly(before, tags[n], scheme)) {
      while (end < tags.size() && goes_on_strictly(tags[end - 1], tags[end])) ++end;
      if (ends_strictly(tags[end - 1], tag_at(end), scheme)) {
        spans.push_back({static_cast<index>(n), static_cast<index>(end), tags[n].type});
      }
    }
    before = tags[end - 1];
    n = end;
  }
  return spans;
}

}  // namespace

std::vector<TagSpan> spans_of(std::span<const ParsedTag> tags, TagScheme scheme,
                              SpanReading reading) {
  return reading == SpanReading::kLenient ? lenient_spans(tags) : strict_spans(tags, scheme);
}

std::vector<ParsedTag> tags_of(std::span<const TagSpan> spans, index length, TagScheme scheme) {
  std::vector<ParsedTag> tags(static_cast<std::size_t>(length));
  const TagSpan* before = nullptr;
  for (const TagSpan& span : spans) {
    check(span.begin >= (before == nullptr ? 0 : before->end) && span.begin < span.end &&
              span.end <= length,
          "tags: the span from {} to {} is out of order, or beyond the {} tokens", span.begin,
          span.end, length);
    const bool touches =
        before != nullptr && before->end == span.begin && before->type == span.type;
    for (index n = span.begin; n < span.end; ++n) {
      TagPart part = TagPart::kInside;
      const bool first = n == span.begin, last = n + 1 == span.end;
      if (first && (scheme != TagScheme::kIob1 || touches)) part = TagPart::kBegin;
      if (last && has_ends(scheme)) part = first ? TagPart::kSingle : TagPart::kEnd;
      tags[static_cast<std::size_t>(n)] = {part, span.type};
    }
    before = &span;
  }
  return tags;
}

TagRepairs& TagRepairs::operator+=(const TagRepairs& other) {
  orphans += other.orphans;
  unclosed += other.unclosed;
  needless += other.needless;
  sentences += other.sentences;
  return *this;
}

TagRepairs count_repairs(std::span<const ParsedTag> tags, TagScheme scheme) {
  TagRepairs repairs;
  const std::vector<TagSpan> spans = lenient_spans(tags);
  const std::vector<ParsedTag> repaired = tags_of(spans, static_cast<index>(tags.size()), scheme);
  for (const TagSpan& span : spans) {
    const auto first = static_cast<std::size_t>(span.begin),
               last = static_cast<std::size_t>(span.end - 1);
    const TagPart begins = tags[first].part, ends = tags[last].part;
    const bool starts_well = begins == TagPart::kBegin || begins == TagPart::kSingle;
    if (scheme == TagScheme::kIob1) {
      if (begins == TagPart::kBegin && repaired[first].part == TagPart::kInside) ++repairs.needless;
      continue;
    }
    if (!starts_well) ++repairs.orphans;
    if (has_ends(scheme) && is_open(ends)) ++repairs.unclosed;
  }
  repairs.sentences = repairs.total() > 0 ? 1 : 0;
  return repairs;
}

std::vector<std::string> convert_tags(std::span<const std::string> tags, TagScheme from,
                                      TagScheme to, TagRepairs* repairs) {
  TagTypes types;
  std::vector<ParsedTag> parsed;
  for (const std::string& tag : tags) parsed.push_back(parse_tag(tag, from, types));
  if (repairs != nullptr) *repairs += count_repairs(parsed, from);
  std::vector<std::string> result;
  const auto length = static_cast<index>(tags.size());
  for (const ParsedTag& tag : tags_of(lenient_spans(parsed), length, to)) {
    result.push_back(tag_name(tag, to, types));
  }
  return result;
}

namespace {

/// Whether `tag` may come right after `before`; kOutside before the first tag.
bool may_follow(const ParsedTag& before, const ParsedTag& tag, TagScheme scheme) {
  const bool same = before.part != TagPart::kOutside && before.type == tag.type;
  switch (scheme) {
    case TagScheme::kIob1:
      return tag.part != TagPart::kBegin || same;
    case TagScheme::kBio:
      return tag.part != TagPart::kInside || same;
    case TagScheme::kBioes:
    case TagScheme::kBmes:
      break;
  }
  const bool goes_on = tag.part == TagPart::kInside || tag.part == TagPart::kEnd;
  return is_open(before.part) ? goes_on && same : !goes_on;
}
bool may_be_last(const ParsedTag& tag, TagScheme scheme) {
  return !has_ends(scheme) || !is_open(tag.part);
}

}  // namespace

TagRules rules_of(std::span<const ParsedTag> tags, TagScheme scheme) {
  TagRules rules;
  for (const ParsedTag& a : tags) {
    rules.start.push_back(may_follow(kOutsideTag, a, scheme));
    rules.end.push_back(may_be_last(a, scheme));
    for (const ParsedTag& b : tags) rules.transitions.push_back(may_follow(a, b, scheme));
  }
  return rules;
}

bool keeps_scheme(std::span<const ParsedTag> tags, TagScheme scheme) {
  ParsedTag before = kOutsideTag;
  for (const ParsedTag& tag : tags) {
    if (!may_follow(before, tag, scheme)) return false;
    before = tag;
  }
  return may_be_last(before, scheme);
}

}  // namespace fovea
