// SPDX-License-Identifier: Apache-2.0
#include "fovea/data/npz_vectors.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "fovea/base/byte_source.h"
#include "fovea/base/error.h"
#include "fovea/base/float32.h"
#include "fovea/base/printable.h"
#include "fovea/data/npz_arrays.h"

namespace fovea {

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
