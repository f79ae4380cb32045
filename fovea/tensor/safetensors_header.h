// SPDX-License-Identifier: Apache-2.0
// The header of a safetensors file: 8 bytes of length, JSON, then the values. Nothing in it is
// trusted. A header that the format forbids is an error, even where its reference reader accepts it
// (duplicate keys, unknown keys, metadata that is not text).
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "fovea/base/byte_source.h"
#include "fovea/tensor/dtype.h"
#include "fovea/tensor/shape.h"

namespace fovea {

/// A type of the format; `dtype` is empty if fovea cannot compute with it.
struct StoredType {
  std::string_view name;
  int bits;
  std::optional<DType> dtype;
};

/// The type as which values of a DType are written.
const StoredType& stored_type(DType dtype);

struct SafetensorsEntry {
  std::string name;
  const StoredType* type = nullptr;
  Shape shape;
  std::uint64_t begin = 0, end = 0;  // bytes, from the first byte of the values
};

using SafetensorsMetadata = std::map<std::string, std::string>;

struct SafetensorsHeader {
  std::vector<SafetensorsEntry> entries;  // in the order of their values
  SafetensorsMetadata metadata;
  std::uint64_t data_begin = 0;  // offset of the first value in the file
};

/// More than any model needs. Together these bound the memory that a hostile header can ask for.
inline constexpr std::uint64_t kMaxHeaderBytes = 100'000'000;
inline constexpr std::size_t kMaxHeaderEntries = 100'000;
inline constexpr std::size_t kMaxHeaderTokenBytes = std::size_t{16} << 20;

/// Reads and validates the header of the file, at most `most_bytes` long; nothing behind it is
/// read. `where` begins each message. Throws kModelDamaged, or kModelWrongKind for a valid file
/// beyond the limits of fovea (more than 6 axes, too many tensors), and what file.read throws.
SafetensorsHeader parse_safetensors_header(const ByteSource& file, std::string_view where,
                                           std::uint64_t most_bytes = kMaxHeaderBytes);
/// Parses the header of a file in memory.
SafetensorsHeader parse_safetensors_header(std::string_view file, std::string_view where);

/// The first bytes of a file, up to its values: entries in the given order, without spaces, keys in
/// a fixed order, padded with spaces to a multiple of 8 bytes. Throws kShape if a name or a text is
/// not UTF-8, or a name occurs twice or is reserved.
std::string safetensors_header_bytes(const SafetensorsHeader& header);

}  // namespace fovea
