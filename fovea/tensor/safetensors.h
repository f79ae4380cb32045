// SPDX-License-Identifier: Apache-2.0
// Tensors in files that other tools read too: https://github.com/huggingface/safetensors.
#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "fovea/base/byte_source.h"
#include "fovea/tensor/named_tensor.h"
#include "fovea/tensor/safetensors_header.h"
#include "fovea/tensor/tensor_source.h"

namespace fovea {

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

/// Writes such a file, atomically.
void write_safetensors(const std::filesystem::path& path, std::span<const NamedTensor> tensors,
                       const SafetensorsMetadata& metadata = {});

}  // namespace fovea
