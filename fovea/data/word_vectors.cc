// SPDX-License-Identifier: Apache-2.0
#include "fovea/data/word_vectors.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <filesystem>
#include <limits>
#include <optional>
#include <string_view>
#include <utility>

#include "fovea/base/bytes.h"
#include "fovea/base/check.h"
#include "fovea/base/error.h"
#include "fovea/base/machine.h"
#include "fovea/base/words.h"
#include "fovea/data/npz_arrays.h"
#include "fovea/data/table/line_reader.h"
#include "fovea/text/compressed.h"
#include "fovea/text/utf8.h"

namespace fovea {

namespace {

constexpr std::size_t kLongestLine = std::size_t{4} << 20;
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
  if (text.size() > 1 && text[0] == '+' && text[1] != '-') text.remove_prefix(1);
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  // A number too small for a double is 0; one too large is refused as infinite.
  const bool small =
      error == std::errc::result_out_of_range && std::is_floating_point_v<T> &&
      (text.find("e-") != std::string_view::npos || text.find("E-") != std::string_view::npos);
  if ((error != std::errc() && !small) || end != text.data() + text.size()) return std::nullopt;
  return small ? T{} : value;
}

struct Header {
  index count = 0, width = 0;
};

// A whole number without a minus; one that is too large is the largest.
std::optional<index> whole_number_in(std::string_view text) {
  constexpr index kLargest = std::numeric_limits<index>::max();
  if (is_all_digits(text)) return number_in<index>(text).value_or(kLargest);
  return text.starts_with('+') ? number_in<index>(text) : std::nullopt;
}

// Two whole numbers.
std::optional<Header> header_in(std::string_view line) {
  if (count_fields(line) != 2) return std::nullopt;
  const auto count = whole_number_in(take_field(line));
  const auto width = whole_number_in(take_field(line));
  if (!count || !width) return std::nullopt;
  return Header{*count, *width};
}

// The kind of a file that begins with these bytes and is no text; empty: probably text.
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

class VectorReader {
 public:
  VectorReader(LineReader& lines, std::span<const std::string> words, index width)
      : lines_(lines), table_(words, width) {}

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
    if (table_.repeated() > 0) {
      table_.note(fmt::format(
          "{}: words that occur again: {}, the first on line {}; their first vectors count",
          lines_.name(), table_.repeated(), first_repeated_));
    }
    return table_.take();
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
    if (width < 1 || width > kWidestVector) {
      throw Error(ErrorCode::kInputFormat,
                  fmt::format("{}: expected vectors of 1 to {} numbers, got {}",
                              lines_.place(line.number), kWidestVector, width),
                  std::string(kFormatHint));
    }
    table_.begin(width, lines_.name());
  }

  [[noreturn]] void fail_columns(const Line& line, index columns) const {
    throw Error(ErrorCode::kInputFormat,
                fmt::format("{}: expected a word and {} numbers, got {} columns",
                            lines_.place(line.number), table_.width(), columns),
                "the file is cut off or damaged, or has vectors of several widths");
  }

  // A word may hold spaces, as some of GloVe's do: its numbers are the last columns. But a line
  // whose other columns are all numbers has too many of these.
  void require_width(const Line& line, std::string_view text) const {
    const index columns = count_fields(text);
    if (columns == table_.width() + 1) return;
    if (columns <= table_.width()) fail_columns(line, columns);
    take_field(text);
    for (index n = columns - 1; n > table_.width(); --n) {
      if (!number_in<double>(take_field(text))) return;
    }
    fail_columns(line, columns);
  }

  void take(const Line& line) {
    std::string_view text = trim(line.text);
    require_width(line, text);
    if (count_fields(text) != table_.width() + 1) return;  // of several words: no token is that
    word_ = take_field(text);
    if (find_invalid_utf8(word_)) lines_.require_text(line);
    const index repeated = table_.repeated();
    table_.take(word_, [&](std::span<float> row) { read_row(line, text, row); });
    if (repeated == 0 && table_.repeated() > 0) first_repeated_ = line.number;
  }

  void read_row(const Line& line, std::string_view numbers, std::span<float> row) const {
    for (std::size_t n = 0; n < row.size(); ++n) {
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
  }

  LineReader& lines_;
  VectorTable table_;
  std::string word_;
  index first_repeated_ = 0;
};

}  // namespace

WordVectors read_word_vectors(std::unique_ptr<ByteStream> stream, const std::string& name,
                              std::span<const std::string> words, index width) {
  LineReader lines(std::move(stream), name, kLongestLine);
  if (const std::string_view format = other_format(lines.peek_sample()); !format.empty()) {
    throw Error(ErrorCode::kInputFormat,
                fmt::format("{}:1: expected vectors as text, got {}", name, format),
                "write them as text, or as NAME.npz of words and vectors; in Python by gensim: "
                "KeyedVectors.load_word2vec_format(FILE, "
                "binary=True).save_word2vec_format(NAME)");
  }
  return VectorReader(lines, words, width).read();
}

WordVectors read_word_vectors(const std::string& file, std::span<const std::string> words,
                              index width) {
  if (file.ends_with(".npz")) return read_npz_vectors(file, words, width);
  return read_word_vectors(open_text(file), name_of_input(file), words, width);
}

index WordVectors::count(VectorMatch wanted) const {
  return std::count(match.begin(), match.end(), wanted);
}

VectorTable::VectorTable(std::span<const std::string> words, index width)
    : words_(static_cast<index>(words.size())) {
  found_.width = width;
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (words[i].empty()) continue;
    exact_.emplace(words[i], static_cast<index>(i));
    lower_[lower_text(words[i])].push_back(static_cast<index>(i));
  }
}

void VectorTable::begin(index width, const std::string& name) {
  if (found_.width > 0 && found_.width != width) {
    throw Error(
        ErrorCode::kOptionValue,
        fmt::format("{}: its vectors have {} numbers; the rows of words are to have {}", name,
                    width, found_.width),
        fmt::format("leave the width out, or say {} (--width; of a tagger --word-width)", width));
  }
  found_.width = width;
  const double bytes = static_cast<double>(words_) * static_cast<double>(width) * sizeof(float);
  require_memory("the vectors of the words", bytes, "take narrower vectors, or fewer words");
  found_.rows.resize(static_cast<std::size_t>(words_ * width));
  found_.match.resize(static_cast<std::size_t>(words_));
}

void VectorTable::take(const std::string& word, const std::function<void(std::span<float>)>& fill) {
  if (const auto found = exact_.find(word); found != exact_.end()) {
    const bool again = found_.match[static_cast<std::size_t>(found->second)] == VectorMatch::kExact;
    if (again) ++repeated_;
    if (!again) store(found->second, VectorMatch::kExact, fill);
  }
  const auto others = lower_.find(lower_text(word));
  if (others == lower_.end()) return;
  for (const index other : others->second) {
    if (found_.match[static_cast<std::size_t>(other)] != VectorMatch::kNone) continue;
    store(other, VectorMatch::kLower, fill);
  }
  lower_.erase(others);  // all of them have been found
}

void VectorTable::store(index word, VectorMatch match,
                        const std::function<void(std::span<float>)>& fill) {
  const auto width = static_cast<std::size_t>(found_.width);
  fill({found_.rows.data() + static_cast<std::size_t>(word) * width, width});
  found_.match[static_cast<std::size_t>(word)] = match;
}

namespace {

const std::string kHint =
    "numpy.savez(FILE, words=numpy.array(words, dtype=str), vectors=vectors): words is [N] of "
    "texts, vectors [N, D] of float32 or float64";

[[noreturn]] void bad(const std::string& where, const std::string& what) {
  throw Error(ErrorCode::kInputFormat, fmt::format("{}: {}", where, what), kHint);
}

Tensor read_words(const NpzArrays& arrays) {
  const std::size_t n = arrays.required("words", kHint);
  Tensor words = arrays.source().read_texts(n);
  const std::string where = arrays.where("words");
  if (!words.defined()) {
    bad(where,
        fmt::format("expected texts (<U..), got {}", to_string(arrays.source().info(n).dtype)));
  }
  // The last axis is that of the characters.
  if (words.shape().axes() != 2) {
    bad(where, fmt::format("expected 1 axis, got {}", words.shape().axes() - 1));
  }
  if (words.shape()[0] == 0) {
    throw Error(ErrorCode::kEmptyInput, fmt::format("{}: expected words, got none", where), kHint);
  }
  return words;
}

// As they are stored, once their shape is right.
Tensor read_values(const NpzArrays& arrays, index words) {
  const std::size_t n = arrays.required("vectors", kHint);
  const TensorInfo info = arrays.source().info(n);
  const std::string where = arrays.where("vectors");
  if (info.dtype != DType::kFloat32 && info.dtype != DType::kFloat64) {
    bad(where, fmt::format("expected float32 or float64, got {}", to_string(info.dtype)));
  }
  if (info.shape.axes() != 2 || info.shape[0] != words) {
    bad(where, fmt::format("expected [{}, D], a row for each of the words, got {}", words,
                           to_string(info.shape)));
  }
  if (info.shape[1] < 1 || info.shape[1] > kWidestVector) {
    bad(where,
        fmt::format("expected vectors of 1 to {} numbers, got {}", kWidestVector, info.shape[1]));
  }
  return arrays.source().read(n);
}

template <class T>
void require_finite(std::span<const T> row, const std::string& where, const std::string& word) {
  const auto found =
      std::find_if_not(row.begin(), row.end(), [](T value) { return is_finite_float32(value); });
  if (found == row.end()) return;
  throw Error(ErrorCode::kInputFormat,
              fmt::format("{}: word {}, number {}: expected a finite number, got {}", where,
                          printable(word), found - row.begin(), why_not_float32(*found)),
              "correct the vector, or leave the word out");
}

template <class T>
void take_all(VectorTable& table, const NpzArrays& arrays, const Tensor& words, const T* values) {
  const index count = words.shape()[0], characters = words.shape()[1];
  const auto width = static_cast<std::size_t>(table.width());
  const std::string of_words = arrays.where("words"), of_vectors = arrays.where("vectors");
  index first_repeated = -1;
  for (index n = 0; n < count; ++n) {
    const std::string word = text_of_characters(words.data<std::int32_t>() + n * characters,
                                                characters, fmt::format("{}[{}]", of_words, n));
    const std::span<const T> row(values + static_cast<std::size_t>(n) * width, width);
    require_finite(row, fmt::format("{}[{}]", of_vectors, n), word);
    table.take(word, [&](std::span<float> into) {
      std::transform(row.begin(), row.end(), into.begin(),
                     [](T value) { return static_cast<float>(value); });
    });
    if (first_repeated < 0 && table.repeated() > 0) first_repeated = n;
  }
  if (first_repeated < 0) return;
  table.note(fmt::format(
      "{}: words that occur again: {}, the first as words[{}]; their first vectors count", of_words,
      table.repeated(), first_repeated));
}

}  // namespace

WordVectors read_npz_vectors(const std::string& file, std::span<const std::string> words,
                             index width) {
  const FileSource source{std::filesystem::path(file)};
  if (source.size() == 0) {
    throw Error(ErrorCode::kEmptyInput, fmt::format("{}: no vectors in the file", file), kHint);
  }
  const NpzArrays arrays(source, file);
  const Tensor held = read_words(arrays);
  const Tensor values = read_values(arrays, held.shape()[0]);
  VectorTable table(words, width);
  table.begin(values.shape()[1], file);
  if (values.dtype() == DType::kFloat32) {
    take_all(table, arrays, held, values.data<float>());
  } else {
    take_all(table, arrays, held, values.data<double>());
  }
  return table.take();
}

}  // namespace fovea
