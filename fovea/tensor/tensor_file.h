// SPDX-License-Identifier: Apache-2.0
// Files of tensors. The extension decides the format: .safetensors or .npz.
#pragma once

#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "fovea/base/bytes.h"
#include "fovea/tensor/named_tensor.h"

namespace fovea {

/// A file of tensors to read. Names, types and shapes are read first, so that a caller can refuse
/// the file before any value is read or unpacked. Besides the tensors that are read, it takes at
/// most 64 MiB of memory.
class TensorFile {
 public:
  /// Throws kInputFormat (another extension, a damaged file), kEmptyInput, and what FileSource
  /// throws.
  explicit TensorFile(const std::filesystem::path& path)
      : TensorFile(path, path.extension().string()) {}
  /// Opens a file in the given format, ".safetensors" or ".npz", whatever it is called.
  TensorFile(const std::filesystem::path& path, std::string_view format);

  /// The names of all tensors, in the order of the file.
  const std::vector<std::string>& names() const { return tensors_->names(); }
  /// Type and shape of the tensor of this name. Throws kInputFormat (a type that cannot be used, a
  /// damaged header).
  TensorInfo info(std::string_view name) const;
  /// The wanted tensors with their values. The checksum of the file, if it has one, is verified
  /// first. Throws kInputFormat for a damaged file, kOutOfMemory.
  std::vector<NamedTensor> read(std::span<const TensorInfo> wanted) const;
  /// All tensors of the file.
  std::vector<NamedTensor> read() const;

 private:
  std::string where_;
  FileSource file_;
  std::unique_ptr<TensorSource> tensors_;
};

/// Throws kUsage unless write_tensors knows the extension.
void check_tensor_path(const std::filesystem::path& path);

/// Bytes that write_tensors takes besides the tensors.
double memory_to_write(const std::filesystem::path& path, std::span<const NamedTensor> tensors);

/// Throws kUsage if the format lacks the type of a tensor, and kShape if they are too large for it.
void check_tensors(const std::filesystem::path& path, std::span<const NamedTensor> tensors);

/// Writes the tensors, atomically; the same tensors give the same bytes. Throws kUsage for another
/// extension, kShape as npz_bytes and safetensors_bytes do, and what write_file_atomically throws.
void write_tensors(const std::filesystem::path& path, std::span<const NamedTensor> tensors);

}  // namespace fovea
