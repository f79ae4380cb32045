// SPDX-License-Identifier: Apache-2.0
// Tensors of a file whose names, types and shapes are known before any value is read.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "fovea/tensor/tensor.h"

namespace fovea {

/// A tensor without its values.
struct TensorInfo {
  std::string name;
  DType dtype = DType::kFloat32;
  Shape shape;
};

class TensorSource {
 public:
  virtual ~TensorSource() = default;
  /// Each once, in the order of the file.
  virtual const std::vector<std::string>& names() const = 0;
  /// The n-th of the names. Reads what is written about it at most.
  virtual TensorInfo info(std::size_t n) const = 0;
  /// Its values, unpacked into the memory of the tensor.
  virtual Tensor read(std::size_t n) const = 0;
  /// Throws if the file carries a checksum of the whole, and it is wrong.
  virtual void verify() const {}
};

}  // namespace fovea
