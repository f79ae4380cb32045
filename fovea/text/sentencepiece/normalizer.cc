// SPDX-License-Identifier: Apache-2.0
#include "fovea/text/sentencepiece/normalizer.h"

#include <algorithm>

#include "fovea/base/check.h"
#include "fovea/base/types.h"
#include "fovea/base/words.h"
#include "fovea/text/sentencepiece/piece_model.h"
#include "fovea/text/utf8.h"

namespace fovea {

namespace {

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";  // U+FFFD

// One rule, or one character, at the front of the text.
CharsMap::Match rewritten(const CharsMap& map, std::string_view text) {
  const CharsMap::Match rule = map.longest(text);
  if (rule.length > 0) return rule;
  const DecodedCharacter c = decode_character(text);
  if (c.status != Utf8Status::kValid) return {1, kReplacement};
  const auto length = static_cast<std::size_t>(c.length);
  return {length, text.substr(0, length)};
}

}  // namespace

void GrowingText::count(std::string_view replacement) {
  // The rules of NFKC make at most 11 bytes of one.
  constexpr std::size_t kMostOfByte = 64, kMostOfAnyText = std::size_t{64} << 10;
  made_ += replacement.size();
  if (made_ > kMostOfAnyText + kMostOfByte * bytes_) {
    throw Error(ErrorCode::kInputFormat,
                fmt::format("the model's rules make more than {} of a text of {}",
                            size_text(kMostOfAnyText + kMostOfByte * bytes_), size_text(bytes_)),
                "name another model: rules that write characters in another way make no text so "
                "much longer");
  }
  memory_.grow_to(static_cast<double>(kSpaceSymbol.size() * made_));
}

std::size_t announced_length(char first) {
  const auto byte = static_cast<unsigned char>(first);
  return byte < 0xC0 ? 1 : byte < 0xE0 ? 2 : byte < 0xF0 ? 3 : 4;
}

PieceNormalizer::PieceNormalizer(const PieceModel& model, std::string_view name)
    : settings_(model.normalizer),
      space_is_suffix_(model.space_is_suffix),
      map_(model.normalizer.charsmap, name),
      denormalizer_(model.denormalizer, name),
      user_defined_(
          trie_of(model, [](PieceType type) { return type == PieceType::kUserDefined; })) {}

CharsMap::Match PieceNormalizer::step(std::string_view text) const {
  const std::size_t own = user_defined_prefix(text);
  if (own > 0) return {own, text.substr(0, own)};
  return rewritten(map_, text);
}

void PieceNormalizer::append(std::string& out, std::string_view text) const {
  if (!settings_.escape_whitespaces) {
    out += text;
    return;
  }
  for (const char c : text) {
    if (c == ' ') {
      out += kSpaceSymbol;
    } else {
      out += c;
    }
  }
}

std::string PieceNormalizer::normalize(std::string_view text) const {
  const bool removes = settings_.remove_extra_whitespaces;
  while (removes && !text.empty()) {
    const CharsMap::Match first = step(text);
    if (first.replacement != " ") break;
    text.remove_prefix(first.length);
  }
  std::string out;
  if (text.empty()) return out;
  GrowingText growing(text.size());
  out.reserve(text.size() + text.size() / 2 + 8);
  if (settings_.add_dummy_prefix && !space_is_suffix_) append(out, " ");
  for (bool behind_space = removes; !text.empty();) {
    auto [length, replacement] = step(text);
    growing.count(replacement);
    while (behind_space && replacement.starts_with(' ')) replacement.remove_prefix(1);
    append(out, replacement);
    if (!replacement.empty()) behind_space = removes && replacement.ends_with(' ');
    text.remove_prefix(length);
  }
  const std::string_view space = settings_.escape_whitespaces ? kSpaceSymbol : " ";
  std::string_view kept = out;
  while (removes && kept.ends_with(space)) kept.remove_suffix(space.size());
  out.erase(kept.size());
  if (settings_.add_dummy_prefix && space_is_suffix_) append(out, " ");
  return out;
}

std::string PieceNormalizer::denormalize(std::string_view text) const {
  if (denormalizer_.empty()) return std::string(text);
  std::string out;
  GrowingText growing(text.size());
  while (!text.empty()) {
    const CharsMap::Match match = rewritten(denormalizer_, text);
    growing.count(match.replacement);
    out += match.replacement;
    text.remove_prefix(match.length);
  }
  return out;
}

namespace {

// A unit of darts-clone: bit 31 marks the place of a text; otherwise bits 0-7 are the label, bit 8
// says that a rule ends here, bits 10-30 are an offset, in steps of 256 with bit 9.
constexpr std::uint32_t kIsValue = std::uint32_t{1} << 31;

constexpr bool ends_rule(std::uint32_t unit) { return ((unit >> 8) & 1) != 0; }
constexpr std::size_t offset_of(std::uint32_t unit) {
  return static_cast<std::size_t>(unit >> 10) << ((unit & (1u << 9)) >> 6);
}

std::uint32_t little_endian(std::string_view bytes, std::size_t at) {
  std::uint32_t value = 0;
  for (std::size_t i = 4; i-- > 0;) value = value << 8 | static_cast<unsigned char>(bytes[at + i]);
  return value;
}

[[noreturn]] void fail_map(std::string_view name, std::string_view what) {
  throw Error(ErrorCode::kModelDamaged, fmt::format("{}: rules of normalization: {}", name, what),
              "name a .model file that SentencePiece or fovea tokenizer train has written");
}

}  // namespace

CharsMap::CharsMap(std::string_view bytes, std::string_view name) {
  if (bytes.empty()) return;
  if (bytes.size() < 4) fail_map(name, fmt::format("{} bytes", bytes.size()));
  const std::size_t trie = little_endian(bytes, 0);
  if (trie == 0 || trie % 4 != 0 || trie > bytes.size() - 4) {
    fail_map(name, fmt::format("a trie of {} bytes in {} bytes", trie, bytes.size()));
  }
  units_.reserve(trie / 4);
  for (std::size_t at = 4; at < 4 + trie; at += 4) units_.push_back(little_endian(bytes, at));
  texts_ = bytes.substr(4 + trie);
  check_trie(name);
  for (int byte = 0; byte < 256; ++byte) {
    const auto label = static_cast<unsigned char>(byte);
    begins_[label] = is_child(children_of(0) ^ label, label);
  }
}

bool CharsMap::is_child(std::size_t at, unsigned char label) const {
  return at < units_.size() && (units_[at] & (kIsValue | 0xFF)) == label;
}

std::size_t CharsMap::children_of(std::size_t at) const { return at ^ offset_of(units_[at]); }

std::string_view CharsMap::text_at(std::uint32_t place) const {
  return std::string_view(texts_).substr(place, texts_.find('\0', place) - place);
}

template <class F>
void CharsMap::visit(std::string_view text, F&& f) const {
  if (text.empty() || !begins_[static_cast<unsigned char>(text.front())]) return;
  std::size_t base = children_of(0);
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto label = static_cast<unsigned char>(text[i]);
    const std::size_t at = base ^ label;
    if (!is_child(at, label)) return;
    base = children_of(at);
    if (ends_rule(units_[at]) && !f(i + 1, base)) return;
  }
}

CharsMap::Match CharsMap::longest(std::string_view text) const {
  std::size_t length = 0, value = 0;
  visit(text, [&](std::size_t bytes, std::size_t at) {
    length = bytes;
    value = at;
    return true;
  });
  if (length == 0) return {};
  return {length, text_at(units_[value] & ~kIsValue)};
}

CharsMap::Match CharsMap::shortest(std::string_view text) const {
  Match match;
  visit(text, [&](std::size_t bytes, std::size_t at) {
    match = {bytes, text_at(units_[at] & ~kIsValue)};
    return false;
  });
  return match;
}

// Visits each unit that a text can reach once, looks at where its rule ends, and finds how long the
// longest text is that leads on from it. The children of a base b are the units q with
// q ^ label = b: listed by base, so that no unit needs 256 looks.
struct CharsMap::Walk {
  static constexpr std::uint32_t kNone = ~std::uint32_t{0};
  enum class State : char { kNew, kOpen, kDone };

  explicit Walk(const std::vector<std::uint32_t>& units)
      : first(units.size() + 256, kNone),
        next(units.size(), kNone),
        heights(units.size()),
        states(units.size()) {
    for (std::size_t q = 0; q < units.size(); ++q) {
      if ((units[q] & kIsValue) != 0) continue;
      std::uint32_t& head = first[q ^ (units[q] & 0xFF)];
      next[q] = head;
      head = static_cast<std::uint32_t>(q);
    }
  }

  std::uint32_t first_child(std::size_t base) const {
    return base < first.size() ? first[base] : kNone;
  }

  void raise(std::size_t at, std::size_t child) {
    heights[at] = std::max(heights[at], heights[child] + 1);
  }

  std::vector<std::uint32_t> first, next;
  std::vector<std::uint32_t> heights;  // bytes of the longest text that leads on from a unit
  std::vector<State> states;
};

void CharsMap::check_trie(std::string_view name) const {
  Walk walk(units_);
  struct Step {
    std::size_t at;
    std::uint32_t child;
  };
  std::vector<Step> path{{0, walk.first_child(children_of(0))}};
  walk.states[0] = Walk::State::kOpen;
  while (!path.empty()) {
    Step& step = path.back();
    if (step.child == Walk::kNone) {
      const std::size_t done = step.at;
      walk.states[done] = Walk::State::kDone;
      path.pop_back();
      if (!path.empty()) walk.raise(path.back().at, done);
      continue;
    }
    const std::size_t at = step.child;
    step.child = walk.next[at];
    if (walk.states[at] == Walk::State::kOpen) fail_map(name, "the trie has a cycle");
    if (walk.states[at] == Walk::State::kDone) {
      walk.raise(step.at, at);
      continue;
    }
    const std::size_t base = children_of(at);
    if (ends_rule(units_[at])) {
      if (base >= units_.size()) fail_map(name, "a rule ends outside of the trie");
      const std::size_t place = units_[base] & ~kIsValue;
      if (place > texts_.size()) fail_map(name, "a rule ends outside of the texts");
    }
    walk.states[at] = Walk::State::kOpen;
    path.push_back({at, walk.first_child(base)});
  }
  if (walk.heights[0] > kLongestPiece) {
    fail_map(name, fmt::format("one is for a text of {} bytes; at most {} are read",
                               walk.heights[0], kLongestPiece));
  }
}

}  // namespace fovea
