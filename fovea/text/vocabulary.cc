// SPDX-License-Identifier: Apache-2.0
#include "fovea/text/vocabulary.h"

#include <algorithm>
#include <bit>
#include <charconv>
#include <cstring>
#include <limits>
#include <optional>

#include "fovea/base/check.h"
#include "fovea/base/words.h"
#include "fovea/text/keyed_hash.h"
#include "fovea/text/utf8.h"

namespace fovea {

namespace {

constexpr std::string_view kHeader = "fovea-tokenizer 1";
constexpr std::size_t kBytesOfLine = 72;  // of a model of subwords

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

  // Whether the next line is "KEY ...".
  bool comes(std::string_view key) const {
    const std::string_view rest = text_.substr(read_);
    return rest.starts_with(key) && rest.substr(key.size()).starts_with(' ');
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

// The number in a line "KEY NUMBER", at most `most`.
index parse_number(LineReader& reader, std::string_view key, index most) {
  const std::string_view digits = reader.value(key);
  index number = 0;
  if (!parse(digits, 10, number) || std::to_string(number) != digits || number < 0 ||
      number > most) {
    reader.damaged(fmt::format("a number of {}", key), printable(digits));
  }
  return number;
}

std::vector<char32_t> parse_characters(LineReader& reader) {
  const auto count =
      static_cast<std::size_t>(parse_number(reader, "characters", kLastCodePoint + 1));
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

// A line "WORD COUNT".
CountedWord parse_word(const LineReader& reader, std::string_view line) {
  CountedWord word;
  const std::size_t space = line.find(' ');
  const std::string_view digits = line.substr(std::min(line.size(), space + 1));
  word.word = line.substr(0, std::min(line.size(), space));
  const bool one_word = !find_invalid_utf8(word.word) && is_one_word(word.word);
  if (!one_word || space == std::string_view::npos || !parse(digits, 10, word.count) ||
      word.count < 0 || std::to_string(word.count) != digits) {
    reader.damaged("a word and its count such as 'fox 12'", printable(line));
  }
  return word;
}

std::vector<CountedWord> parse_words(LineReader& reader, bool marks) {
  const auto special = static_cast<index>(special_words(marks).size());
  const auto count = static_cast<std::size_t>(
      parse_number(reader, "words", std::numeric_limits<token>::max() - special));
  std::vector<CountedWord> words;
  KeyedSet<std::string_view> seen;  // parts of the text
  while (words.size() < count) {
    const std::string_view line = reader.next("a word");
    words.push_back(parse_word(reader, line));
    const std::string_view word = line.substr(0, words.back().word.size());
    if (is_special_word(word, marks) || !seen.insert(word).second) {
      reader.damaged("a word that is not listed yet", printable(line));
    }
  }
  return words;
}

// A line "model BYTES", and the lines of these bytes.
std::string parse_model(LineReader& reader) {
  const auto size =
      static_cast<std::size_t>(parse_number(reader, "model", std::numeric_limits<token>::max()));
  std::string model;
  while (model.size() < size) {
    const std::string_view line = reader.next("a line of the model");
    const std::optional<std::string> bytes = bytes_of_base64(line);
    if (!bytes || bytes->size() != std::min(kBytesOfLine, size - model.size())) {
      reader.damaged(fmt::format("{} bytes in base64", std::min(kBytesOfLine, size - model.size())),
                     printable(line));
    }
    model += *bytes;
  }
  return model;
}

WordSplit parse_split(LineReader& reader) {
  if (!reader.comes("split")) return WordSplit::kSpaces;
  const std::string_view value = reader.value("split");
  const std::string_view expected = to_string(WordSplit::kPunctuation);
  if (value != expected) reader.damaged(fmt::format("'split {}'", expected), printable(value));
  return WordSplit::kPunctuation;
}

// A line that is there only if the value differs from what files without it have.
bool parse_switch(LineReader& reader, std::string_view key, bool without) {
  if (!reader.comes(key)) return without;
  const std::string_view value = reader.value(key);
  const std::string_view expected = without ? "false" : "true";
  if (value != expected) reader.damaged(fmt::format("'{} {}'", key, expected), printable(value));
  return !without;
}

bool holds_files(std::string_view kind) { return kind == kPieceKind || kind == kPretrainedKind; }

}  // namespace

bool is_special_word(std::string_view word, bool marks) {
  const auto special = special_words(marks);
  return std::find(special.begin(), special.end(), word) != special.end();
}

bool is_one_word(std::string_view text) {
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (white_space_at_front(text.substr(i)) > 0) return false;
  }
  return !text.empty();
}

std::string to_text(const TokenizerData& data) {
  std::string text = fmt::format("{}\nkind {}\n", kHeader, data.kind);
  if (data.lower) text += "lower true\n";
  if (!data.marks) text += "marks false\n";
  if (data.kind == kWordKind) {
    if (data.split != WordSplit::kSpaces) text += fmt::format("split {}\n", to_string(data.split));
    text += fmt::format("unknown {}\nwords {}\n", data.unknown, data.words.size());
    for (const CountedWord& word : data.words)
      text += fmt::format("{} {}\n", word.word, word.count);
  } else if (holds_files(data.kind)) {
    text += fmt::format("model {}\n", data.model.size());
    for (std::size_t at = 0; at < data.model.size(); at += kBytesOfLine) {
      text += base64(std::string_view(data.model).substr(at, kBytesOfLine)) + '\n';
    }
  } else {
    text += fmt::format("characters {}\n", data.characters.size());
    for (const char32_t c : data.characters) text += code_point_name(c) + '\n';
  }
  return text + checksum_line(text) + '\n';
}

TokenizerData tokenizer_data_from_text(std::string_view text, std::string_view name) {
  LineReader reader(text, name);
  const std::string_view header = reader.next(kHeader);
  if (header != kHeader) reader.damaged(fmt::format("'{}'", kHeader), printable(header));
  TokenizerData data;
  data.kind = reader.value("kind");
  data.lower = parse_switch(reader, "lower", false);
  data.marks = parse_switch(reader, "marks", true);
  if (data.kind == kWordKind) {
    data.split = parse_split(reader);
    data.unknown = parse_number(reader, "unknown", std::numeric_limits<index>::max());
    data.words = parse_words(reader, data.marks);
  } else if (holds_files(data.kind)) {
    data.model = parse_model(reader);
  } else {
    data.characters = parse_characters(reader);
  }
  const std::string expected = checksum_line(reader.read_so_far());
  const std::string_view found = reader.next("the checksum");
  if (found != expected) reader.damaged(fmt::format("'{}'", expected), printable(found));
  if (reader.left() > 0)
    reader.damaged("the end of the file", fmt::format("{} bytes more", reader.left()));
  return data;
}

namespace {

std::string hint_for(std::string_view line) {
  if (line.starts_with("\xEF\xBB\xBF")) {
    return "remove the byte order mark at the start of the file";
  }
  if (line.ends_with('\r')) return "end lines with \\n alone, without \\r before it";
  return "a vocabulary has a word a line, as in the vocab.txt of a model: <pad>, <unk>, with "
         "--marks <s> and </s>, then the words";
}

[[noreturn]] void fail_line(std::string_view name, index line, std::string_view expected,
                            std::string_view got) {
  throw Error(ErrorCode::kInputFormat,
              fmt::format("{}:{}: expected {}, got {}", name, line, expected, printable(got)),
              hint_for(got));
}

}  // namespace

std::string word_list_text(const TokenizerData& data) {
  std::string text;
  for (const std::string_view word : special_words(data.marks)) text += fmt::format("{}\n", word);
  for (const CountedWord& word : data.words) text += word.word + '\n';
  return text;
}

std::vector<std::string> words_of_list(std::string_view text, std::string_view name, bool marks) {
  require_utf8(text, name);
  const auto special = special_words(marks);
  std::vector<std::string> words;
  KeyedSet<std::string_view> seen;  // parts of the text
  for (index number = 1; !text.empty(); ++number) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(text.size(), line.size() + 1));
    const auto id = static_cast<std::size_t>(number - 1);
    if (id < special.size()) {
      if (line != special[id]) fail_line(name, number, special[id], line);
      continue;
    }
    if (!is_one_word(line)) fail_line(name, number, "one word", line);
    if (is_special_word(line, marks) || !seen.insert(line).second) {
      fail_line(name, number, "a word that is not listed yet", line);
    }
    words.emplace_back(line);
  }
  if (words.empty()) {
    throw Error(
        ErrorCode::kInputFormat,
        fmt::format("{}:{}: expected a word, got the end of the file", name, special.size() + 1),
        hint_for(""));
  }
  return words;
}

namespace {

template <class T>
std::uint64_t load(const char* bytes) {
  T value;
  std::memcpy(&value, bytes, sizeof(T));
  return value;
}

// The first eight bytes of a word. No two words of the same length up to eight have the same.
std::uint64_t start_of(std::string_view word) {
  const char* const bytes = word.data();
  const std::size_t size = word.size();
  if (size >= 8) return load<std::uint64_t>(bytes);
  if (size >= 4) return load<std::uint32_t>(bytes) | load<std::uint32_t>(bytes + size - 4) << 32;
  if (size >= 2) return load<std::uint16_t>(bytes) | load<std::uint16_t>(bytes + size - 2) << 16;
  return size == 0 ? 0 : load<std::uint8_t>(bytes);
}

}  // namespace

// Half of the slots stay empty, so that a word that is not there is soon known.
WordTable::WordTable(std::size_t words) : slots_(std::bit_ceil(2 * words + 1)) {}

std::size_t WordTable::place_of(std::string_view word, std::uint64_t start) const {
  const std::size_t mask = slots_.size() - 1;
  for (std::size_t place = keyed_hash(word) & mask;; place = (place + 1) & mask) {
    const Slot& slot = slots_[place];
    if (slot.word.empty()) return place;
    if (slot.start != start || slot.word.size() != word.size()) continue;
    if (word.size() <= 8 || slot.word == word) return place;
  }
}

bool WordTable::add(std::string_view word, token id) {
  if (word.empty() || 2 * used_ >= slots_.size()) {
    fail(ErrorCode::kInternal, "table of words: an empty word, or more than there is room for");
  }
  const std::uint64_t start = start_of(word);
  Slot& slot = slots_[place_of(word, start)];
  if (!slot.word.empty()) return false;
  slot = {start, word, id};
  ++used_;
  return true;
}

token WordTable::find(std::string_view word) const {
  return slots_[place_of(word, start_of(word))].id;
}

}  // namespace fovea
