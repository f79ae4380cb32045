// SPDX-License-Identifier: Apache-2.0
#include "fovea/text/tokenizer/byte_bpe.h"

#include <utf8proc.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <memory>

#include "fovea/base/check.h"
#include "fovea/base/words.h"
#include "fovea/text/tokenizer/added_tokens.h"
#include "fovea/text/tokenizer/text_rules.h"
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
  add_parts();
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
  merges_.finish();
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

void ByteBpe::add_parts() {
  std::vector<std::pair<std::size_t, token>> begins;
  for (token id = 0; id < size(); ++id) {
    const std::size_t begin = part_bytes_.size();
    if (kind(id) != BpeTokenKind::kNormal || !append_bytes_of_name(part_bytes_, name(id))) continue;
    if (part_bytes_.size() > begin) begins.emplace_back(begin, id);
  }
  parts_ = WordTable(begins.size());
  for (std::size_t n = 0; n < begins.size(); ++n) {
    const auto [begin, id] = begins[n];
    const std::size_t end = n + 1 < begins.size() ? begins[n + 1].first : part_bytes_.size();
    parts_.add(std::string_view(part_bytes_).substr(begin, end - begin), id);
  }
  is_whole_ = std::vector<std::atomic<Whole>>(model_.names.size());
}

token ByteBpe::whole_part(std::string_view part) const {
  const token id = parts_.find(part);
  if (id == kNoToken || model_.split.ignore_merges) return id;
  std::atomic<Whole>& whole = is_whole_[static_cast<std::size_t>(id)];
  if (whole.load(std::memory_order_relaxed) == Whole::kUnknown) {
    std::vector<token> ids;
    append_joined(ids, part);
    const bool is = ids.size() == 1 && ids[0] == id;
    whole.store(is ? Whole::kIs : Whole::kIsNot, std::memory_order_relaxed);
  }
  return whole.load(std::memory_order_relaxed) == Whole::kIs ? id : kNoToken;
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
  if (model_.nfc) text = changed = text_rule::composed_by_unicode_9(text);
  while (!text.empty()) encode_part(ids, take_part(text, model_.split));
}

void ByteBpe::encode_part(std::vector<token>& ids, std::string_view part) const {
  if (const token id = whole_part(part); id != kNoToken) return ids.push_back(id);
  append_joined(ids, part);
}

void ByteBpe::append_joined(std::vector<token>& ids, std::string_view part) const {
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

// What kO200k tells apart: U and L of its pattern.
constexpr std::uint8_t kUpper = 1, kLower = 2;

struct Kind {
  Class of = Class::kEnd;
  std::uint8_t letters = 0;
};

constexpr Kind ascii_kind(char c) {
  if (c == '\n' || c == '\r') return {Class::kNewline};
  if (c >= 'a' && c <= 'z') return {Class::kLetter, kLower};
  if (c >= 'A' && c <= 'Z') return {Class::kLetter, kUpper};
  if (c >= '0' && c <= '9') return {Class::kNumber};
  return {c == ' ' || (c >= '\t' && c <= '\r') ? Class::kSpace : Class::kOther};
}

constexpr Kind kANumber = {Class::kNumber}, kACapital = {Class::kLetter, kUpper},
               kASmall = {Class::kLetter, kLower}, kALetter = {Class::kLetter, kUpper | kLower},
               kAMark = {Class::kOther, kUpper | kLower};

// What is a letter, a number or a mark since Unicode 15.1 and 16, which `tokenizers` knows.
struct LaterKind {
  char32_t first, last;
  Kind kind;
};
constexpr LaterKind kLaterKinds[] = {
    {0x897, 0x897, kAMark},       {0x1c89, 0x1c89, kACapital},  {0x1c8a, 0x1c8a, kASmall},
    {0xa7cb, 0xa7cc, kACapital},  {0xa7cd, 0xa7cd, kASmall},    {0xa7da, 0xa7da, kACapital},
    {0xa7db, 0xa7db, kASmall},    {0xa7dc, 0xa7dc, kACapital},  {0x105c0, 0x105f3, kALetter},
    {0x10d40, 0x10d49, kANumber}, {0x10d4a, 0x10d4f, kALetter}, {0x10d50, 0x10d65, kACapital},
    {0x10d69, 0x10d6d, kAMark},   {0x10d6f, 0x10d6f, kALetter}, {0x10d70, 0x10d85, kASmall},
    {0x10ec2, 0x10ec4, kALetter}, {0x10efc, 0x10efc, kAMark},   {0x11380, 0x11389, kALetter},
    {0x1138b, 0x1138b, kALetter}, {0x1138e, 0x1138e, kALetter}, {0x11390, 0x113b5, kALetter},
    {0x113b7, 0x113b7, kALetter}, {0x113b8, 0x113c0, kAMark},   {0x113c2, 0x113c2, kAMark},
    {0x113c5, 0x113c5, kAMark},   {0x113c7, 0x113ca, kAMark},   {0x113cc, 0x113d0, kAMark},
    {0x113d1, 0x113d1, kALetter}, {0x113d2, 0x113d2, kAMark},   {0x113d3, 0x113d3, kALetter},
    {0x113e1, 0x113e2, kAMark},   {0x116d0, 0x116e3, kANumber}, {0x11bc0, 0x11be0, kALetter},
    {0x11bf0, 0x11bf9, kANumber}, {0x11f5a, 0x11f5a, kAMark},   {0x13460, 0x143fa, kALetter},
    {0x16100, 0x1611d, kALetter}, {0x1611e, 0x1612f, kAMark},   {0x16130, 0x16139, kANumber},
    {0x16d40, 0x16d6c, kALetter}, {0x16d70, 0x16d79, kANumber}, {0x18cff, 0x18cff, kALetter},
    {0x1ccf0, 0x1ccf9, kANumber}, {0x1e5d0, 0x1e5ed, kALetter}, {0x1e5ee, 0x1e5ef, kAMark},
    {0x1e5f0, 0x1e5f0, kALetter}, {0x1e5f1, 0x1e5fa, kANumber}, {0x2ebf0, 0x2ee5d, kALetter},
};

Kind later_kind(char32_t c) {
  const auto* const found = std::ranges::lower_bound(kLaterKinds, c, {}, &LaterKind::last);
  if (found != std::end(kLaterKinds) && found->first <= c) return found->kind;
  return {Class::kOther};
}

Kind kind_of(char32_t c) {
  switch (utf8proc_category(static_cast<utf8proc_int32_t>(c))) {
    case UTF8PROC_CATEGORY_LU:
    case UTF8PROC_CATEGORY_LT:
      return kACapital;
    case UTF8PROC_CATEGORY_LL:
      return kASmall;
    case UTF8PROC_CATEGORY_LM:
    case UTF8PROC_CATEGORY_LO:
      return kALetter;
    case UTF8PROC_CATEGORY_MN:
    case UTF8PROC_CATEGORY_MC:
    case UTF8PROC_CATEGORY_ME:
      return kAMark;
    case UTF8PROC_CATEGORY_ND:
    case UTF8PROC_CATEGORY_NL:
    case UTF8PROC_CATEGORY_NO:
      return kANumber;
    case UTF8PROC_CATEGORY_CN:
      return later_kind(c);
    default:
      return {is_white_space(c) ? Class::kSpace : Class::kOther};
  }
}

// The kinds of the characters that texts have most.
class Kinds {
 public:
  Kinds() {
    for (std::size_t c = 0; c < kinds_.size(); ++c) {
      kinds_[c] = c < 0x80 ? ascii_kind(static_cast<char>(c)) : kind_of(static_cast<char32_t>(c));
    }
  }
  Kind operator[](char32_t c) const { return c < kinds_.size() ? kinds_[c] : kind_of(c); }

 private:
  std::array<Kind, 0x10000> kinds_;
};

const Kinds& kinds() {
  static const auto of_all = std::make_unique<const Kinds>();
  return *of_all;
}

struct Character {
  Class kind = Class::kEnd;
  std::uint8_t letters = 0;
  std::size_t bytes = 0;
};

// A text of which characters are asked; where `ends_at_number`, a number is the end of it.
struct Scanned {
  std::string_view text;
  const Kinds& kinds;
  bool ends_at_number = false;

  // The character at a place; kEnd behind the last.
  Character at(std::size_t place) const {
    if (place >= text.size()) return {};
    const auto first = static_cast<unsigned char>(text[place]);
    char32_t c = first;
    std::size_t bytes = 1;
    if (first >= 0x80) {
      const DecodedCharacter decoded = decode_character(text.substr(place));
      c = decoded.value;
      bytes = static_cast<std::size_t>(decoded.length);
    }
    const Kind kind = kinds[c];
    if (ends_at_number && kind.of == Class::kNumber) return {};
    return {kind.of, kind.letters, bytes};
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

  // The end of the run of characters from `place` on that have one of these letters.
  std::size_t run_of(std::uint8_t letters, std::size_t place) const {
    for (Character c = at(place); (c.letters & letters) != 0; c = at(place)) place += c.bytes;
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

// The end of U*L+ from `begin` on; `begin` if there is none. U* takes what it can, and gives back
// to L+ no more than it needs: the last one that is both.
std::size_t word_with_lower(const Scanned& text, std::size_t begin) {
  std::size_t shared = begin, place = begin;
  Character c = text.at(place);
  for (; (c.letters & kUpper) != 0; c = text.at(place)) {
    place += c.bytes;
    if ((c.letters & kLower) != 0) shared = place;
  }
  return (c.letters & kLower) != 0 ? text.run_of(kLower, place) : shared;
}

// The end of a word of kO200k; 0: the text does not begin with one.
std::size_t o200k_word(const Scanned& text, const Character& first) {
  const bool may_precede = first.kind == Class::kSpace || first.kind == Class::kOther;
  const std::size_t behind = may_precede ? first.bytes : 0;
  for (const std::size_t begin : {behind, std::size_t{0}}) {
    if (const std::size_t end = word_with_lower(text, begin); end > begin) return end;
  }
  for (const std::size_t begin : {behind, std::size_t{0}}) {
    if (const std::size_t end = text.run_of(kUpper, begin); end > begin) return end;
  }
  return 0;
}

std::size_t o200k_part(const Scanned& text, const PreSplit& split) {
  const Character first = text.at(0);
  if (const std::size_t end = o200k_word(text, first); end > 0) {
    return end + (split.endings ? contraction(text.text.substr(end), Spelling::kAnyCase) : 0);
  }
  if (first.kind == Class::kNumber) return text.run(0, Class::kNumber, split.digits);
  const std::size_t begin = text.text[0] == ' ' ? 1 : 0;
  if (text.at(begin).kind == Class::kOther) {
    std::size_t end = text.run(begin, Class::kOther);
    while (text.at(end).kind == Class::kNewline || text.text.substr(end).starts_with('/')) ++end;
    return end;
  }
  const std::size_t length = newline_part(text);
  return length > 0 ? length : space_part(text);
}

std::size_t part_length(std::string_view text, const PreSplit& split) {
  if (split.pattern == SplitPattern::kNone) return text.size();
  const Scanned whole{text, kinds()};
  if (split.pattern == SplitPattern::kCl100k) return cl100k_part(whole, split.digits);
  if (split.pattern == SplitPattern::kO200k) return o200k_part(whole, split);
  if (!split.digits_apart) return gpt2_part(whole);
  const Character first = whole.at(0);
  return first.kind == Class::kNumber ? first.bytes : gpt2_part({text, kinds(), true});
}

}  // namespace

std::span<const PreSplit> pre_splits() { return kPreSplits; }

std::string_view take_part(std::string_view& text, const PreSplit& split) {
  const std::string_view part = text.substr(0, part_length(text, split));
  text.remove_prefix(part.size());
  return part;
}

}  // namespace fovea
