// SPDX-License-Identifier: Apache-2.0
// A tensor owns values with a shape and a type. Kernels and gradients are elsewhere.
#pragma once

#include <algorithm>
#include <cstddef>
#include <memory>
#include <span>
#include <string>

#include "fovea/base/check.h"
#include "fovea/base/view.h"
#include "fovea/tensor/dtype.h"
#include "fovea/tensor/shape.h"

namespace fovea {

/// Contiguous, row-major. A copy of a Tensor shares its memory, as do reshape and slice; clone()
/// does not. The last owner frees the memory. A fresh tensor starts on a 64-byte boundary; a slice
/// starts where its first row does. Several threads may read one tensor at once.
class Tensor {
 public:
  /// No axes, no memory: size() is 0. Call only `defined`, assignment and the sizes on it.
  Tensor() = default;
  /// Filled with zeros. Throws kShape if the bytes cannot be counted, kOutOfMemory.
  explicit Tensor(const Shape& shape, DType dtype = DType::kFloat32);
  /// Not filled.
  static Tensor empty(const Shape& shape, DType dtype = DType::kFloat32);
  /// The memory of another, who keeps it until the last tensor of it is gone; nothing is copied. It
  /// must hold the values of this shape, one after another (or apart, where the caller knows).
  static Tensor borrow(std::shared_ptr<std::byte[]> values, const Shape& shape, DType dtype);
  /// A copy of `values`; there must be shape.size() of them.
  template <class T>
  static Tensor of(const Shape& shape, std::span<const T> values);

  bool defined() const { return memory_ != nullptr; }
  const Shape& shape() const { return shape_; }
  DType dtype() const { return dtype_; }
  index size() const { return defined() ? shape_.size() : 0; }
  index byte_size() const { return size() * fovea::byte_size(dtype_); }

  /// The values; T must be the type of the tensor (Error kShape otherwise).
  template <class T>
  T* data() {
    require(kDTypeOf<T>);
    return reinterpret_cast<T*>(start_);
  }
  template <class T>
  const T* data() const {
    require(kDTypeOf<T>);
    return reinterpret_cast<const T*>(start_);
  }
  std::span<std::byte> bytes() { return {start_, static_cast<std::size_t>(byte_size())}; }
  std::span<const std::byte> bytes() const {
    return {start_, static_cast<std::size_t>(byte_size())};
  }

  /// All values, one after another.
  template <class T>
  Vec<T> vec() {
    return {data<T>(), size()};
  }
  template <class T>
  Vec<const T> vec() const {
    return {data<T>(), size()};
  }
  /// The last axis as columns, all others as rows; a scalar is [1, 1].
  template <class T>
  Rows<T> rows() {
    return {data<T>(), row_count(), column_count()};
  }
  template <class T>
  Rows<const T> rows() const {
    return {data<T>(), row_count(), column_count()};
  }

  /// This memory with another shape of the same size.
  Tensor reshape(const Shape& shape) const;
  /// Rows [begin, end) of axis 0, in the same memory.
  Tensor slice(index begin, index end) const;
  /// A copy with memory of its own.
  Tensor clone() const;
  /// A copy of another type. Floats become bfloat16 by rounding to nearest even, NaN stays NaN;
  /// floats become whole numbers by truncation. A value that becomes a whole number must lie in the
  /// range of the new type (Error kShape otherwise).
  Tensor to(DType dtype) const;
  /// Writes the values of `source`, which must have this shape and type.
  void copy_from(const Tensor& source);
  void fill_zero();

  /// "float32 [2, 5]".
  std::string describe() const;

 private:
  void require(DType dtype) const;
  index row_count() const;
  index column_count() const;

  std::shared_ptr<std::byte[]> memory_;
  std::byte* start_ = nullptr;
  Shape shape_;
  DType dtype_ = DType::kFloat32;
};

template <class T>
Tensor Tensor::of(const Shape& shape, std::span<const T> values) {
  check(static_cast<index>(values.size()) == shape.size(), "tensor: {} needs {} values; got {}",
        to_string(shape), shape.size(), values.size());
  Tensor tensor = empty(shape, kDTypeOf<T>);
  std::copy(values.begin(), values.end(), tensor.data<T>());
  return tensor;
}

}  // namespace fovea
