// SPDX-License-Identifier: Apache-2.0
#include "fovea/data/word_vectors.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "fovea/base/check.h"
#include "fovea/base/machine.h"
#include "fovea/data/table/line_reader.h"
#include "fovea/text/compressed.h"
#include "fovea/text/utf8.h"

namespace fovea {

namespace {

constexpr std::size_t kLongestLine = std::size_t{4} << 20;
constexpr index kWidest = 1 << 16;
constexpr std::string_view kBlanks = " \t";
constexpr std::string_view kFormatHint =
    "give text: a word and its numbers on each line, with or without a first line \"COUNT WIDTH\"";

std::string_view trim(std::string_view text) {
  constexpr std::string_view kEnds = " \t\r";
  text.remove_prefix(std::min(text.find_first_not_of(kEnds), text.size()));
  const std::size_t last = text.find_last_not_of(kEnds);
  return text.substr(0, last == std::string_view::npos ? 0 : last + 1);
}

index count_fields(std::string_view line) {
  index count = 0;
  bool inside = false;
  for (const char c : line) {
    const bool blank = c == ' ' || c == '\t';
    if (!blank && !inside) ++count;
    inside = !blank;
  }
  return count;
}

// The first field, which is taken off the text.
std::string_view take_field(std::string_view& text) {
  text.remove_prefix(std::min(text.find_first_not_of(kBlanks), text.size()));
  const std::string_view field = text.substr(0, text.find_first_of(kBlanks));
  text.remove_prefix(field.size());
  return field;
}

template <class T>
std::optional<T> number_in(std::string_view text) {
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  // Of a number too small for a double nothing is left; one too large is refused as infinite.
  const bool small =
      error == std::errc::result_out_of_range && std::is_floating_point_v<T> &&
      (text.find("e-") != std::string_view::npos || text.find("E-") != std::string_view::npos);
  if ((error != std::errc() && !small) || end != text.data() + text.size()) return std::nullopt;
  return small ? T{} : value;
}

struct Header {
  index count = 0, width = 0;
};

// Two whole numbers.
std::optional<Header> header_in(std::string_view line) {
  if (count_fields(line) != 2) return std::nullopt;
  const auto count = number_in<std::uint32_t>(take_field(line));
  const auto width = number_in<std::uint32_t>(take_field(line));
  if (!count || !width) return std::nullopt;
  return Header{*count, *width};
}

// What a file that begins so holds instead of text; empty: probably text.
std::string_view other_format(std::string_view begin) {
  if (begin.starts_with("\xBA\x16\x4F\x2F")) return "a binary model of fastText";
  if (begin.starts_with("PK\x03\x04")) return "a ZIP archive (.npz or .zip)";
  if (begin.starts_with("\x93NUMPY")) return "an array of NumPy (.npy)";
  const std::size_t newline = begin.find('\n');
  if (newline == std::string_view::npos || !header_in(trim(begin.substr(0, newline)))) return {};
  // Behind "COUNT WIDTH" and a word, bytes that no text has: numbers of four bytes each.
  const std::string_view rest = begin.substr(newline + 1, 4096);
  const bool binary = std::any_of(rest.begin(), rest.end(), [](char c) {
    const auto byte = static_cast<unsigned char>(c);
    return byte < 0x20 && c != '\n' && c != '\r' && c != '\t';
  });
  return binary && find_invalid_utf8(rest) ? "word2vec's binary format" : std::string_view();
}

// Which of the wanted words are spelled so.
class WantedWords {
 public:
  explicit WantedWords(std::span<const std::string> words) {
    for (std::size_t i = 0; i < words.size(); ++i) {
      if (words[i].empty()) continue;
      exact_.emplace(words[i], static_cast<index>(i));
      lower_[lower_text(words[i])].push_back(static_cast<index>(i));
    }
  }

  // -1: none
  index find(const std::string& word) const {
    const auto found = exact_.find(word);
    return found == exact_.end() ? -1 : found->second;
  }
  std::span<const index> find_lower(const std::string& word) const {
    const auto found = lower_.find(lower_text(word));
    if (found == lower_.end()) return {};
    return found->second;
  }

 private:
  std::unordered_map<std::string, index> exact_;
  std::unordered_map<std::string, std::vector<index>> lower_;
};

class VectorReader {
 public:
  VectorReader(LineReader& lines, std::span<const std::string> words, index width)
      : lines_(lines), wanted_(words), words_(static_cast<index>(words.size())) {
    found_.width = width;
  }

  WordVectors read() {
    Line line;
    if (!next(line)) fail_empty();
    const std::string_view first = trim(line.text);
    const auto header = header_in(first);
    begin(line, header ? header->width : count_fields(first) - 1);
    const index header_line = line.number;
    index vectors = 0;
    if (!header) {
      take(line);
      ++vectors;
    }
    for (; next(line); ++vectors) take(line);
    if (header && header->count != vectors) {
      throw Error(ErrorCode::kInputFormat,
                  fmt::format("{}: the first line says {} vectors; the file has {}",
                              lines_.place(header_line), header->count, vectors),
                  "the file is cut off or was changed: get it again, or correct its first line");
    }
    if (vectors == 0) fail_empty();
    if (repeated_ > 0) {
      found_.notes.push_back(fmt::format(
          "{}: words that occur again: {}, the first on line {}; their first vectors count",
          lines_.name(), repeated_, first_repeated_));
    }
    return std::move(found_);
  }

 private:
  [[noreturn]] void fail_empty() const {
    throw Error(ErrorCode::kEmptyInput, fmt::format("{}: no vectors in the file", lines_.name()),
                std::string(kFormatHint));
  }

  // The next line that is not blank.
  bool next(Line& line) {
    try {
      while (lines_.next(line)) {
        if (!trim(line.text).empty()) return true;
      }
      return false;
    } catch (const BadRow& error) {
      throw error.with(error.code(), error.what(), std::string(kFormatHint));
    }
  }

  // Once the width is known.
  void begin(const Line& line, index width) {
    lines_.require_text(line);
    if (width < 1 || width > kWidest) {
      throw Error(ErrorCode::kInputFormat,
                  fmt::format("{}: expected vectors of 1 to {} numbers, got {}",
                              lines_.place(line.number), kWidest, width),
                  std::string(kFormatHint));
    }
    if (found_.width > 0 && found_.width != width) {
      throw Error(ErrorCode::kOptionValue,
                  fmt::format("--width {}: {} has vectors of {} numbers", found_.width,
                              lines_.name(), width),
                  fmt::format("leave --width out, or say {}", width));
    }
    found_.width = width;
    const double bytes = static_cast<double>(words_) * static_cast<double>(width) * sizeof(float);
    require_memory("the vectors of the words", bytes, "take narrower vectors, or fewer words");
    found_.rows.resize(static_cast<std::size_t>(words_ * width));
    found_.match.resize(static_cast<std::size_t>(words_));
  }

  [[noreturn]] void fail_columns(const Line& line, index columns) const {
    throw Error(ErrorCode::kInputFormat,
                fmt::format("{}: expected a word and {} numbers, got {} columns",
                            lines_.place(line.number), found_.width, columns),
                "the file is cut off or damaged, or has vectors of several widths");
  }

  // A word may hold spaces, as some of GloVe's do: its numbers are the last columns. But a line
  // whose other columns are all numbers has too many of these.
  void require_width(const Line& line, std::string_view text) const {
    const index columns = count_fields(text);
    if (columns == found_.width + 1) return;
    if (columns <= found_.width) fail_columns(line, columns);
    take_field(text);
    for (index n = columns - 1; n > found_.width; --n) {
      if (!number_in<double>(take_field(text))) return;
    }
    fail_columns(line, columns);
  }

  void take(const Line& line) {
    std::string_view text = trim(line.text);
    require_width(line, text);
    if (count_fields(text) != found_.width + 1) return;  // of several words: no token is that
    word_ = take_field(text);
    if (find_invalid_utf8(word_)) lines_.require_text(line);
    const index exact = wanted_.find(word_);
    if (exact >= 0) {
      if (match(exact) == VectorMatch::kExact) {
        if (repeated_++ == 0) first_repeated_ = line.number;
      } else {
        store(line, text, exact, VectorMatch::kExact);
      }
    }
    for (const index word : wanted_.find_lower(word_)) {
      if (match(word) == VectorMatch::kNone) store(line, text, word, VectorMatch::kLower);
    }
  }

  VectorMatch match(index word) const { return found_.match[static_cast<std::size_t>(word)]; }

  void store(const Line& line, std::string_view numbers, index word, VectorMatch match) {
    float* const row = found_.rows.data() + word * found_.width;
    for (index n = 0; n < found_.width; ++n) {
      const std::string_view field = take_field(numbers);
      const auto number = number_in<double>(field);
      row[n] = number ? static_cast<float>(*number) : 0;
      if (number && std::isfinite(row[n])) continue;
      lines_.require_text(line);
      throw Error(ErrorCode::kInputFormat,
                  fmt::format("{}: column {}: expected a finite number, got '{}'",
                              lines_.place(line.number), n + 2, escape_text(field.substr(0, 40))),
                  "the file is damaged, or its words and numbers are not parted by spaces");
    }
    found_.match[static_cast<std::size_t>(word)] = match;
  }

  LineReader& lines_;
  const WantedWords wanted_;
  const index words_;
  WordVectors found_;
  std::string word_;
  index repeated_ = 0, first_repeated_ = 0;
};

}  // namespace

index WordVectors::count(VectorMatch wanted) const {
  return std::count(match.begin(), match.end(), wanted);
}

WordVectors read_word_vectors(std::unique_ptr<ByteStream> stream, const std::string& name,
                              std::span<const std::string> words, index width) {
  LineReader lines(std::move(stream), name, kLongestLine);
  if (const std::string_view format = other_format(lines.peek_sample()); !format.empty()) {
    throw Error(ErrorCode::kInputFormat,
                fmt::format("{}:1: expected vectors as text, got {}", name, format),
                "write them as text; in Python by gensim: KeyedVectors.load_word2vec_format(FILE, "
                "binary=True).save_word2vec_format(NAME)");
  }
  return VectorReader(lines, words, width).read();
}

WordVectors read_word_vectors(const std::string& file, std::span<const std::string> words,
                              index width) {
  return read_word_vectors(open_text(file), name_of_input(file), words, width);
}

}  // namespace fovea
