// SPDX-License-Identifier: Apache-2.0
// Files of tensors, in the format that their name says: .safetensors or .npz.
#pragma once

#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "fovea/base/byte_source.h"
#include "fovea/tensor/named_tensor.h"
#include "fovea/tensor/tensor_source.h"

namespace fovea {

/// A file that somebody made for us. Names, types and shapes are read first, so that who wants some
/// of its tensors can refuse the file before a value is read or unpacked. Beside the tensors that
/// are read, it takes at most 64 MiB.
class TensorFile {
 public:
  /// Throws kInputFormat (another extension, a damaged file), kEmptyInput, and what FileSource
  /// throws.
  explicit TensorFile(const std::filesystem::path& path)
      : TensorFile(path, path.extension().string()) {}
  /// The same of a file whose name may be any: ".safetensors" or ".npz".
  TensorFile(const std::filesystem::path& path, std::string_view format);

  /// Of all tensors, in the order of the file.
  const std::vector<std::string>& names() const { return tensors_->names(); }
  /// Of one of these. Throws kInputFormat (a type that cannot be used, a damaged header).
  TensorInfo info(std::string_view name) const;
  /// These, with their values. A checksum of the whole file is verified before. Throws kInputFormat
  /// for what is damaged, kOutOfMemory.
  std::vector<NamedTensor> read(std::span<const TensorInfo> wanted) const;
  /// All of them.
  std::vector<NamedTensor> read() const;

 private:
  std::string where_;
  FileSource file_;
  std::unique_ptr<TensorSource> tensors_;
};

/// Throws kUsage unless write_tensors knows the extension.
void check_tensor_path(const std::filesystem::path& path);

/// Throws kShape if write_tensors would, because tensors of these shapes are too large.
void check_tensor_sizes(const std::filesystem::path& path, std::span<const NamedTensor> tensors);

/// Writes the tensors, atomically; the same tensors give the same bytes. Throws kUsage for another
/// extension, kShape as npz_bytes and safetensors_bytes do, and what write_file_atomically throws.
void write_tensors(const std::filesystem::path& path, std::span<const NamedTensor> tensors);

}  // namespace fovea
