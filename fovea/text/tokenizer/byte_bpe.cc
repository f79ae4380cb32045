// SPDX-License-Identifier: Apache-2.0
#include "fovea/text/tokenizer/byte_bpe.h"

#include <algorithm>
#include <array>
#include <iterator>

#include "fovea/base/check.h"
#include "fovea/base/words.h"
#include "fovea/text/tokenizer/added_tokens.h"
#include "fovea/text/utf8.h"

namespace fovea {

namespace {

// GPT-2's letters for bytes: those that print stand for themselves, the others for the letters from
// U+0100 on, in their order.
constexpr bool prints(int byte) {
  return (byte >= '!' && byte <= '~') || (byte >= 0xA1 && byte <= 0xAC) || byte >= 0xAE;
}

constexpr char32_t kFirstOther = 0x100;

struct Letters {
  std::array<char32_t, 256> of_byte{};
  std::array<std::int16_t, 0x200> byte_of{};  // -1: the letter stands for none

  constexpr Letters() {
    for (auto& byte : byte_of) byte = -1;
    char32_t other = kFirstOther;
    for (std::size_t byte = 0; byte < 256; ++byte) {
      of_byte[byte] = prints(static_cast<int>(byte)) ? static_cast<char32_t>(byte) : other++;
      byte_of[of_byte[byte]] = static_cast<std::int16_t>(byte);
    }
  }
};
constexpr Letters kLetters;

// The bytes that a name of letters stands for. False, and `out` is as it was, if it has others.
bool append_bytes_of_name(std::string& out, std::string_view name) {
  const std::size_t before = out.size();
  while (!name.empty()) {
    const TakenCharacter c = take_character(name);
    const std::int16_t byte = c.value < kLetters.byte_of.size() ? kLetters.byte_of[c.value] : -1;
    if (byte < 0) {
      out.resize(before);
      return false;
    }
    out += static_cast<char>(byte);
  }
  return true;
}

[[noreturn]] void damaged(const std::string& what) {
  throw Error(ErrorCode::kModelDamaged, "the vocabulary: " + what,
              "get the model again, or take another one");
}

}  // namespace

std::string name_of_bytes(std::string_view bytes) {
  std::string name;
  for (const char byte : bytes)
    append_utf8(name, kLetters.of_byte[static_cast<unsigned char>(byte)]);
  return name;
}

ByteBpe::ByteBpe(ByteBpeModel model) : model_(std::move(model)) {
  check(model_.kinds.size() == model_.names.size(), "vocabulary: {} kinds for {} tokens",
        model_.kinds.size(), model_.names.size());
  add_names();
  add_merges();
  add_whole_texts();
}

void ByteBpe::add_names() {
  ids_.reserve(model_.names.size());
  for (std::size_t n = 0; n < model_.names.size(); ++n) {
    const std::string& name = model_.names[n];
    if (ids_.emplace(name, static_cast<token>(n)).second) continue;
    damaged(fmt::format("{} is there twice, at {} and {}", printable(name), id_of(name), n));
  }
  for (std::size_t byte = 0; byte < bytes_.size(); ++byte) {
    bytes_[byte] = id_of(name_of_bytes(std::string(1, static_cast<char>(byte))));
  }
}

void ByteBpe::add_merges() {
  merges_ = MergeTable(model_.merges.size());
  for (std::size_t rank = 0; rank < model_.merges.size(); ++rank) {
    const std::string_view both = model_.merges[rank];
    const std::size_t blank = both.find(' ');
    const std::string_view left = both.substr(0, blank);
    const std::string_view right = blank == both.npos ? "" : both.substr(blank + 1);
    std::string joined(left);
    joined += right;
    const token ids[] = {id_of(left), id_of(right), id_of(joined)};
    if (left.empty() || right.empty() || std::ranges::find(ids, kNoToken) != std::end(ids)) {
      damaged(
          fmt::format("merge {} ({}) joins what are no tokens, or to none", rank, printable(both)));
    }
    if (merges_.add(ids[0], ids[1], ids[2])) continue;
    damaged(fmt::format("merge {} is there twice", printable(both)));
  }
}

void ByteBpe::add_whole_texts() {
  for (token id = 0; id < size(); ++id) {
    if (name(id).empty() || (!is_mark(id) && kind(id) != BpeTokenKind::kUserDefined)) continue;
    wholes_[static_cast<unsigned char>(name(id)[0])].push_back(id);
  }
  for (std::vector<token>& ids : wholes_) {
    std::stable_sort(ids.begin(), ids.end(),
                     [&](token a, token b) { return name(a).size() > name(b).size(); });
  }
}

token ByteBpe::id_of(std::string_view name) const {
  const auto found = ids_.find(name);
  return found == ids_.end() ? kNoToken : found->second;
}

std::pair<std::size_t, token> ByteBpe::find_whole(std::string_view text, std::size_t begin,
                                                  Marks marks) const {
  for (std::size_t place = begin; place < text.size(); ++place) {
    for (const token id : wholes_[static_cast<unsigned char>(text[place])]) {
      if (marks == Marks::kAreText && is_mark(id)) continue;
      if (text.substr(place).starts_with(name(id))) return {place, id};
    }
  }
  return {text.size(), kNoToken};
}

void ByteBpe::encode(std::vector<token>& ids, std::string_view text, Marks marks, TextPlace) const {
  for (std::size_t begin = 0; begin < text.size();) {
    const auto [place, id] = find_whole(text, begin, marks);
    std::string_view plain = text.substr(begin, place - begin);
    if (std::ranges::binary_search(model_.takes_left, id)) {
      plain = plain.substr(0, begin_of_last_space(plain));
    }
    encode_plain(ids, plain);
    if (id == kNoToken) return;
    ids.push_back(id);
    begin = place + name(id).size();
  }
}

void ByteBpe::encode_plain(std::vector<token>& ids, std::string_view text) const {
  if (text.empty()) return;
  std::string changed;
  if (model_.prefix_space && !text.starts_with(' ')) {
    changed.push_back(' ');
    changed.append(text);
    text = changed;
  }
  if (model_.nfc) text = changed = composed(text);
  while (!text.empty()) encode_part(ids, take_part(text, model_.split));
}

void ByteBpe::encode_part(std::vector<token>& ids, std::string_view part) const {
  if (model_.split.ignore_merges) {
    if (const token id = id_of(name_of_bytes(part)); id != kNoToken && !is_mark(id)) {
      ids.push_back(id);
      return;
    }
  }
  const std::size_t first = ids.size();
  for (const char byte : part) {
    const token id = bytes_[static_cast<unsigned char>(byte)];
    if (id != kNoToken) ids.push_back(id);
  }
  merges_.join(ids, first);
}

std::string ByteBpe::decode(std::span<const token> ids) const {
  std::string text;
  for (const token id : ids) append_bytes(text, id);
  return text;
}

void ByteBpe::append_bytes(std::string& out, token id) const {
  if (is_mark(id) || kind(id) == BpeTokenKind::kUserDefined ||
      !append_bytes_of_name(out, name(id))) {
    out += name(id);
  }
}

namespace {

constexpr PreSplit llama3(std::string_view name) {
  return {.name = name,
          .pattern = SplitPattern::kCl100k,
          .digits = 3,
          .begins = true,
          .ignore_merges = true};
}

constexpr PreSplit kPreSplits[] = {
    {.name = "gpt-2"},
    {.name = "smollm", .digits_apart = true},
    {.name = "starcoder", .digits_apart = true},
    {.name = "refact", .digits_apart = true},
    llama3("llama-bpe"),
    llama3("llama3"),
    llama3("llama-v3"),
    {.name = "qwen2", .pattern = SplitPattern::kCl100k, .digits = 1},
};

enum class Class : std::uint8_t { kEnd, kLetter, kNumber, kSpace, kNewline, kOther };

struct Character {
  Class kind = Class::kEnd;
  std::size_t bytes = 0;
};

Class class_of(char32_t c) {
  if (c == U'\n' || c == U'\r') return Class::kNewline;
  if (is_letter(c)) return Class::kLetter;
  if (is_number(c)) return Class::kNumber;
  return is_white_space(c) ? Class::kSpace : Class::kOther;
}

constexpr std::size_t kAscii = 128;

std::array<Class, kAscii> ascii_classes() {
  std::array<Class, kAscii> classes;
  for (std::size_t c = 0; c < kAscii; ++c) classes[c] = class_of(static_cast<char32_t>(c));
  return classes;
}

// A text of which characters are asked; where `ends_at_number`, a number is the end of it.
struct Scanned {
  std::string_view text;
  bool ends_at_number = false;

  // The character at a place; kEnd behind the last.
  Character at(std::size_t place) const {
    static const std::array<Class, kAscii> ascii = ascii_classes();
    if (place >= text.size()) return {};
    const auto first = static_cast<unsigned char>(text[place]);
    Character c{Class::kEnd, 1};
    if (first < kAscii) {
      c.kind = ascii[first];
    } else {
      const DecodedCharacter decoded = decode_character(text.substr(place));
      c = {class_of(decoded.value), static_cast<std::size_t>(decoded.length)};
    }
    return ends_at_number && c.kind == Class::kNumber ? Character{} : c;
  }

  // The end of the run of one class from `place` on, of at most `most` characters.
  std::size_t run(std::size_t place, Class kind, int most = 0) const {
    for (int n = 0; most == 0 || n < most; ++n) {
      const Character c = at(place);
      if (c.kind != kind) break;
      place += c.bytes;
    }
    return place;
  }
};

bool is_space(Class kind) { return kind == Class::kSpace || kind == Class::kNewline; }

enum class Spelling { kAsWritten, kAnyCase };

// Bytes of 's, 't, 're, 've, 'm, 'll or 'd at the front of a text; 0: there is none.
std::size_t contraction(std::string_view text, Spelling spelling) {
  if (text.size() < 2 || text[0] != '\'') return 0;
  // The long s is another case of s.
  if (spelling == Spelling::kAnyCase && text.substr(1).starts_with("\u017F")) return 3;
  const auto letter = [&](std::size_t n) {
    const char c = n < text.size() ? text[n] : '\0';
    return spelling == Spelling::kAnyCase && c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a')
                                                                  : c;
  };
  switch (letter(1)) {
    case 's':
    case 't':
    case 'm':
    case 'd':
      return 2;
    case 'r':
    case 'v':
      return letter(2) == 'e' ? 3 : 0;
    case 'l':
      return letter(2) == 'l' ? 3 : 0;
    default:
      return 0;
  }
}

// The end of a part that is white space, which begins the text: of \s+(?!\S)|\s+.
std::size_t space_part(const Scanned& text) {
  std::size_t end = 0, last = 0;
  Character c = text.at(0);
  for (; is_space(c.kind); c = text.at(end)) {
    last = end;
    end += c.bytes;
  }
  return c.kind == Class::kEnd || last == 0 ? end : last;
}

// The end of \s*[\r\n]+ at the front of a text; 0: there is none.
std::size_t newline_part(const Scanned& text) {
  std::size_t end = 0, found = 0;
  for (Character c = text.at(0); is_space(c.kind); c = text.at(end)) {
    end += c.bytes;
    if (c.kind == Class::kNewline) found = end;
  }
  return found;
}

std::size_t gpt2_part(const Scanned& text) {
  if (const std::size_t length = contraction(text.text, Spelling::kAsWritten)) return length;
  const std::size_t begin = text.text[0] == ' ' ? 1 : 0;
  const Class kind = text.at(begin).kind;
  if (kind == Class::kEnd || is_space(kind)) return space_part(text);
  return text.run(begin, kind);
}

std::size_t cl100k_part(const Scanned& text, int digits) {
  if (const std::size_t length = contraction(text.text, Spelling::kAnyCase)) return length;
  const Character first = text.at(0);
  if (first.kind == Class::kLetter) return text.run(0, Class::kLetter);
  if ((first.kind == Class::kSpace || first.kind == Class::kOther) &&
      text.at(first.bytes).kind == Class::kLetter) {
    return text.run(first.bytes, Class::kLetter);
  }
  if (first.kind == Class::kNumber) return text.run(0, Class::kNumber, digits);
  const std::size_t begin = text.text[0] == ' ' ? 1 : 0;
  if (text.at(begin).kind == Class::kOther) {
    return text.run(text.run(begin, Class::kOther), Class::kNewline);
  }
  const std::size_t length = newline_part(text);
  return length > 0 ? length : space_part(text);
}

std::size_t part_length(std::string_view text, const PreSplit& split) {
  if (split.pattern == SplitPattern::kNone) return text.size();
  const Scanned whole{text};
  if (split.pattern == SplitPattern::kCl100k) return cl100k_part(whole, split.digits);
  if (!split.digits_apart) return gpt2_part(whole);
  const Character first = whole.at(0);
  return first.kind == Class::kNumber ? first.bytes : gpt2_part({text, true});
}

}  // namespace

std::span<const PreSplit> pre_splits() { return kPreSplits; }

std::string_view take_part(std::string_view& text, const PreSplit& split) {
  const std::string_view part = text.substr(0, part_length(text, split));
  text.remove_prefix(part.size());
  return part;
}

}  // namespace fovea
