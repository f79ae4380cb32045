// SPDX-License-Identifier: Apache-2.0
// Tensors in files that other tools read too: https://github.com/huggingface/safetensors.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "fovea/base/bytes.h"
#include "fovea/tensor/named_tensor.h"
#include "fovea/tensor/tensor.h"

namespace fovea {

// The header of a safetensors file: 8 bytes of length, JSON, then the values. Nothing in it is
// trusted. A header that the format forbids is an error, even where its reference reader accepts it
// (duplicate keys, unknown keys, metadata that is not text).

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

struct Safetensors {
  std::vector<NamedTensor> tensors;  // in the order of the file
  SafetensorsMetadata metadata;

  /// The tensor of that name. If there is none, find returns nullptr and at throws kModelDamaged.
  const Tensor* find(std::string_view name) const;
  const Tensor& at(std::string_view name) const;
};

/// Every file that fovea writes carries the checksum of all its bytes in `__metadata__.xxh3-128`,
/// computed with zeros in place of its own 32 digits. So one rename replaces values and checksum
/// together. Files of other tools have no checksum: only their structure can be checked.
enum class ChecksumRule { kIfPresent, kRequired };
inline constexpr std::string_view kChecksumKey = "xxh3-128";

/// A safetensors file. Its checksum covers all its bytes; verify() checks it.
class SafetensorsSource : public TensorSource {
 public:
  /// `file` must outlive it. Throws as parse_safetensors_header does.
  SafetensorsSource(const ByteSource& file, std::string where,
                    std::uint64_t most_header_bytes = kMaxHeaderBytes);
  const std::vector<std::string>& names() const override { return names_; }
  /// These throw kModelWrongKind for a type that cannot be used.
  TensorInfo info(std::size_t n) const override;
  Tensor read(std::size_t n) const override;
  std::optional<BlockType> block_type(std::size_t n) const override;
  SharedBytes blocks(std::size_t n) const override;
  /// "F16": the type in the file.
  std::string_view type(std::size_t n) const { return header_.entries[n].type->name; }
  /// The shape of a tensor of any type.
  const Shape& shape(std::size_t n) const { return header_.entries[n].shape; }
  /// Writes the values of a tensor of F32, F16 or BF16 to as many floats, a piece at a time. Throws
  /// kModelWrongKind for another type, kShape for another number of values.
  void read_widened(std::size_t n, Vec<float> to) const;
  /// Throws kModelDamaged.
  void verify() const override { verify(ChecksumRule::kIfPresent); }
  void verify(ChecksumRule rule) const;
  /// Moves all tensors and the metadata out of the source, which is empty afterwards.
  Safetensors take();

 private:
  const ByteSource& file_;
  std::string where_;
  SafetensorsHeader header_;
  std::vector<std::string> names_;
};

/// All tensors of a file, each with memory of its own. Every length is checked before it is used.
/// The memory taken is at most twice the file plus 64 MiB.
/// BOOL is read as bytes, and becomes U8 when it is written again.
/// Throws kModelDamaged (what and where), kModelWrongKind (a dtype that is not F32, BF16, F64, I32,
/// I64, U8 or BOOL; over 6 axes), and what read_file throws.
Safetensors read_safetensors(const std::filesystem::path& path,
                             ChecksumRule rule = ChecksumRule::kIfPresent);
/// Parses the bytes of a file; `where` begins each message.
Safetensors parse_safetensors(std::string_view bytes, std::string_view where,
                              ChecksumRule rule = ChecksumRule::kIfPresent);

/// The bytes of a file: the same tensors and metadata give the same bytes, whatever their order
/// (values by descending alignment, then by name). Adds the checksum, and `format: pt`, without
/// which some readers refuse a file. Throws kShape if a name occurs twice, is reserved or is not
/// UTF-8.
std::string safetensors_bytes(std::span<const NamedTensor> tensors,
                              const SafetensorsMetadata& metadata = {});

/// The same file in pieces, one behind another, without a copy of the values: views of the tensors,
/// whose memory must outlive them.
struct SafetensorsPieces {
  std::string header;
  std::vector<std::string_view> values;
};
SafetensorsPieces safetensors_pieces(std::span<const NamedTensor> tensors,
                                     const SafetensorsMetadata& metadata = {});

/// Writes such a file, atomically.
void write_safetensors(const std::filesystem::path& path, std::span<const NamedTensor> tensors,
                       const SafetensorsMetadata& metadata = {});

}  // namespace fovea
