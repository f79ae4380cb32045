// SPDX-License-Identifier: Apache-2.0
// GGUF files, versions 2 and 3: the models of llama.cpp
// (https://github.com/ggml-org/ggml/blob/master/docs/gguf.md).
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "fovea/base/bytes.h"
#include "fovea/tensor/named_tensor.h"
#include "fovea/tensor/quantized.h"

namespace fovea {

// The header: pairs of keys and values, then name, shape and place of each tensor. Nothing in it is
// trusted. It is refused as llama.cpp refuses it: tensors lie one behind another, in the order of
// the header, each at a multiple of the alignment.

/// The types of the metadata, by their numbers in a file.
enum class GgufValueType : std::uint32_t {
  kUInt8,
  kInt8,
  kUInt16,
  kInt16,
  kUInt32,
  kInt32,
  kFloat32,
  kBool,
  kString,
  kArray,
  kUInt64,
  kInt64,
  kFloat64,
};

/// "uint32".
std::string_view to_string(GgufValueType type);

/// A value of the metadata: one element, or the elements of an array, which are no arrays.
class GgufValue {
 public:
  GgufValueType type() const { return is_array_ ? GgufValueType::kArray : element_; }
  /// The type of its elements.
  GgufValueType element() const { return element_; }
  bool is_array() const { return is_array_; }
  std::size_t size() const { return size_; }

  // Element n. Throws kModelWrongKind if it is none of that kind; the message says what it is.
  /// A whole number of any width.
  std::int64_t whole(std::size_t n = 0) const;
  /// A number of any type.
  double number(std::size_t n = 0) const;
  bool flag(std::size_t n = 0) const;
  std::string_view text(std::size_t n = 0) const;

  /// As people read it: a text as it is, a number in its shortest form.
  std::string shown(std::size_t n = 0) const;

 private:
  friend class GgufHeaderReader;

  template <class T>
  T at(std::size_t n) const;

  bool is_array_ = false;
  GgufValueType element_ = GgufValueType::kUInt8;
  std::size_t size_ = 1;
  std::string bytes_;                // the elements, as they lie in the file; texts without lengths
  std::vector<std::uint64_t> ends_;  // of texts
};

struct GgufPair {
  std::string key;
  GgufValue value;
};

struct GgufTensor {
  std::string name;
  const QuantizedType* type = nullptr;
  Shape shape;                         ///< the last axis is the one whose values follow each other
  std::uint64_t begin = 0, bytes = 0;  ///< in the file
};

struct GgufHeader {
  std::uint32_t version = 0;
  std::uint64_t alignment = 0;
  std::uint64_t metadata_end = 0;   ///< where the metadata end
  std::uint64_t bytes = 0;          ///< from the first byte of the file to the end of the header
  std::vector<GgufPair> metadata;   ///< in the order of the file
  std::vector<GgufTensor> tensors;  ///< the same

  /// The value of a key, or null.
  const GgufValue* find(std::string_view key) const;
  /// Throws kModelDamaged if there is none.
  const GgufValue& at(std::string_view key) const;
};

/// More than any model needs. They bound the memory that a hostile header can ask for: about twice
/// the bytes of the header.
inline constexpr std::uint64_t kMaxGgufHeaderBytes = std::uint64_t{256} << 20;
inline constexpr std::uint64_t kMaxGgufItems = 100'000;  ///< keys, and tensors
inline constexpr std::uint64_t kMaxGgufNameBytes = 65'535;

/// Whether a file begins as GGUF files do. False for what is no regular file.
bool is_gguf(const std::filesystem::path& path);

/// How many values all tensors hold.
index value_count(const GgufHeader& header);

/// Reads and checks the header; no value of a tensor is read. `where` begins each message. Throws
/// kModelDamaged, kModelWrongKind (another version, a type that is not known, arrays in arrays, a
/// part of a split file), and what file.read throws.
GgufHeader parse_gguf_header(const ByteSource& file, std::string_view where,
                             std::uint64_t most_bytes = kMaxGgufHeaderBytes);

/// Where the number of tensors stands in a file: behind its first word and its version.
inline constexpr std::size_t kGgufTensorCountPlace = 4 + sizeof(std::uint32_t);

/// A file of the same metadata, without tensors.
std::string gguf_without_tensors(const ByteSource& file, const GgufHeader& header);

/// The tensors of a file, widened to float32 block by block as they are read.
class GgufSource : public TensorSource {
 public:
  /// `file` must outlive it. Throws as parse_gguf_header().
  GgufSource(const ByteSource& file, std::string where);
  const GgufHeader& header() const { return header_; }
  const std::vector<std::string>& names() const override { return names_; }
  TensorInfo info(std::size_t n) const override;
  /// Throws kModelWrongKind for a type that cannot be widened.
  Tensor read(std::size_t n) const override;
  std::optional<BlockType> block_type(std::size_t n) const override;
  SharedBytes blocks(std::size_t n) const override;

 private:
  const ByteSource& file_;
  std::string where_;
  GgufHeader header_;
  std::vector<std::string> names_;
};

}  // namespace fovea
