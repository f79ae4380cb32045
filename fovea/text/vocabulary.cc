// SPDX-License-Identifier: Apache-2.0
#include "fovea/text/vocabulary.h"

#include <algorithm>
#include <charconv>

#include "fovea/base/check.h"
#include "fovea/base/printable.h"
#include "fovea/text/utf8.h"

namespace fovea {

namespace {

constexpr std::string_view kHeader = "fovea-tokenizer 1";

std::string checksum_line(std::string_view bytes) {
  std::uint64_t hash = 0xcbf29ce484222325u;
  for (const char c : bytes) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
  return fmt::format("checksum {:016x}", hash);
}

// Reads a file line by line; its errors name the line.
class LineReader {
 public:
  LineReader(std::string_view text, std::string_view name) : text_(text), name_(name) {}

  std::string_view next(std::string_view expected) {
    ++line_;
    const std::string_view rest = text_.substr(read_);
    if (rest.empty()) damaged(expected, "the end of the file");
    const std::size_t end = rest.find('\n');
    if (end == std::string_view::npos) damaged(expected, "a line that is cut off");
    read_ += end + 1;
    return rest.substr(0, end);
  }

  // The value of a line "KEY VALUE".
  std::string_view value(std::string_view key) {
    const std::string_view line = next(key);
    if (!line.starts_with(key) || line.size() < key.size() + 2 || line[key.size()] != ' ') {
      damaged(fmt::format("'{} ...'", key), printable(line));
    }
    return line.substr(key.size() + 1);
  }

  std::string_view read_so_far() const { return text_.substr(0, read_); }
  std::size_t left() const { return text_.size() - read_; }

  [[noreturn]] void damaged(std::string_view expected, std::string_view got) const {
    throw Error(ErrorCode::kModelDamaged,
                fmt::format("{}:{}: expected {}, got {}", name_, line_, expected, got),
                "the tokenizer was changed or cut off; restore it from a copy of the model");
  }

 private:
  std::string_view text_;
  std::string_view name_;
  std::size_t read_ = 0;
  index line_ = 0;
};

// Parses digits. Callers write the number again and compare, so that one spelling is accepted.
template <class Number>
bool parse(std::string_view digits, int base, Number& value) {
  const char* end = digits.data() + digits.size();
  const auto [stop, error] = std::from_chars(digits.data(), end, value, base);
  return error == std::errc{} && stop == end;
}

std::string code_point_name(std::uint32_t c) { return fmt::format("U+{:04X}", c); }

char32_t parse_character(const LineReader& reader, std::string_view line) {
  std::uint32_t value = 0;
  const bool number = line.starts_with("U+") && parse(line.substr(2), 16, value);
  if (!number || !is_scalar_value(value) || code_point_name(value) != line) {
    reader.damaged("a character such as 'U+4E2D'", printable(line));
  }
  return value;
}

std::vector<char32_t> parse_characters(LineReader& reader) {
  const std::string_view digits = reader.value("characters");
  std::size_t count = 0;
  if (!parse(digits, 10, count) || std::to_string(count) != digits || count > kLastCodePoint + 1) {
    reader.damaged("a number of characters", printable(digits));
  }
  std::vector<char32_t> characters;
  std::vector<bool> seen;
  // Memory grows with the lines that are read: a false count reserves nothing.
  while (characters.size() < count) {
    const std::string_view line = reader.next("a character");
    const char32_t c = parse_character(reader, line);
    if (c >= seen.size()) seen.resize(c + 1);
    if (seen[c]) reader.damaged("a character that is not listed yet", printable(line));
    seen[c] = true;
    characters.push_back(c);
  }
  return characters;
}

}  // namespace

std::vector<char32_t> characters_by_frequency(std::string_view text, std::string_view name) {
  require_utf8(text, name);
  std::vector<index> counts;  // by code point, up to the largest one seen
  while (!text.empty()) {
    const DecodedCharacter c = decode_character(text);
    if (c.value >= counts.size()) counts.resize(c.value + 1);
    ++counts[c.value];
    text.remove_prefix(static_cast<std::size_t>(c.length));
  }
  std::vector<char32_t> characters;
  for (char32_t c = 0; c < counts.size(); ++c) {
    if (counts[c] > 0) characters.push_back(c);
  }
  std::stable_sort(characters.begin(), characters.end(),
                   [&](char32_t a, char32_t b) { return counts[a] > counts[b]; });
  return characters;
}

std::string to_text(const TokenizerData& data) {
  std::string text =
      fmt::format("{}\nkind {}\ncharacters {}\n", kHeader, data.kind, data.characters.size());
  for (const char32_t c : data.characters) text += code_point_name(c) + '\n';
  return text + checksum_line(text) + '\n';
}

TokenizerData tokenizer_data_from_text(std::string_view text, std::string_view name) {
  LineReader reader(text, name);
  const std::string_view header = reader.next(kHeader);
  if (header != kHeader) reader.damaged(fmt::format("'{}'", kHeader), printable(header));
  TokenizerData data;
  data.kind = reader.value("kind");
  data.characters = parse_characters(reader);
  const std::string expected = checksum_line(reader.read_so_far());
  const std::string_view found = reader.next("the checksum");
  if (found != expected) reader.damaged(fmt::format("'{}'", expected), printable(found));
  if (reader.left() > 0)
    reader.damaged("the end of the file", fmt::format("{} bytes more", reader.left()));
  return data;
}

}  // namespace fovea
