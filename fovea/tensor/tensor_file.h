// SPDX-License-Identifier: Apache-2.0
// Files of tensors, in the format that their name says: .safetensors or .npz.
#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "fovea/tensor/named_tensor.h"

namespace fovea {

/// All tensors of a file that somebody made for us. Throws kInputFormat (another extension, a
/// damaged file, a type that cannot be used), kEmptyInput, and what read_file throws.
std::vector<NamedTensor> read_tensors(const std::filesystem::path& path);

/// Throws kUsage unless write_tensors knows the extension.
void check_tensor_path(const std::filesystem::path& path);

/// Throws kShape if write_tensors would, because tensors of these shapes are too large.
void check_tensor_sizes(const std::filesystem::path& path, std::span<const NamedTensor> tensors);

/// Writes the tensors, atomically; the same tensors give the same bytes. Throws kUsage for another
/// extension, kShape as npz_bytes and safetensors_bytes do, and what write_file_atomically throws.
void write_tensors(const std::filesystem::path& path, std::span<const NamedTensor> tensors);

}  // namespace fovea
