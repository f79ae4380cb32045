// SPDX-License-Identifier: Apache-2.0
// Tensors with names, as files hold them, and the files that hold them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "fovea/kernel/block_matrix.h"
#include "fovea/tensor/tensor.h"

namespace fovea {

struct NamedTensor {
  std::string name;
  Tensor tensor;
};

// The tensors of a file. Names, types and shapes are known before any value is read.

/// A tensor without its values.
struct TensorInfo {
  std::string name;
  DType dtype = DType::kFloat32;
  Shape shape;
};

class TensorSource {
 public:
  virtual ~TensorSource() = default;
  /// The names, each once, in the order of the file.
  virtual const std::vector<std::string>& names() const = 0;
  /// Type and shape of the tensor with the n-th name. Reads no values.
  virtual TensorInfo info(std::size_t n) const = 0;
  /// The tensor with the n-th name; its values are unpacked into its memory.
  virtual Tensor read(std::size_t n) const = 0;
  /// The type of its values, if products can read them as they lie in the file.
  virtual std::optional<BlockType> block_type(std::size_t) const { return std::nullopt; }
  /// Its bytes in the file, which outlive the source; it must have such a type.
  virtual SharedBytes blocks(std::size_t) const { return {}; }
  /// Throws if the file carries a checksum of all its bytes and it is wrong.
  virtual void verify() const {}
};

}  // namespace fovea
