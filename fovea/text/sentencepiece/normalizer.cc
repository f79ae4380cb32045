// SPDX-License-Identifier: Apache-2.0
#include "fovea/text/sentencepiece/normalizer.h"

#include "fovea/base/check.h"
#include "fovea/base/machine.h"
#include "fovea/base/size_text.h"
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

// The normalised text while it grows. A rule may make any number of bytes of one, so its bytes are
// counted before any of them is looked at or kept.
class GrowingText {
 public:
  explicit GrowingText(std::size_t bytes) : bytes_(bytes) {}

  void count(std::string_view replacement) {
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
    memory_.grow_to(kBytesOfSpace * static_cast<double>(made_));
  }

 private:
  static constexpr double kBytesOfSpace = kSpaceSymbol.size();

  const std::size_t bytes_;
  std::size_t made_ = 0;
  GrowingMemory memory_{"a line with the model's rules", "use shorter lines"};
};

}  // namespace

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

}  // namespace fovea
