// SPDX-License-Identifier: Apache-2.0
// A tensor owns values with a shape and a type. Kernels and gradients are elsewhere.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>

#include "fovea/base/check.h"
#include "fovea/base/precision.h"
#include "fovea/base/types.h"
#include "fovea/base/view.h"

namespace fovea {

enum class DType : std::uint8_t { kFloat32, kBFloat16, kInt32, kFloat64, kInt64, kUInt8 };

/// "float32", "bfloat16", "int32", "float64", "int64", "uint8".
std::string_view to_string(DType dtype);
/// Bytes of one value.
index byte_size(DType dtype);

template <class T>
struct DTypeOf;
template <>
struct DTypeOf<float> {
  static constexpr DType value = DType::kFloat32;
};
template <>
struct DTypeOf<BFloat16> {
  static constexpr DType value = DType::kBFloat16;
};
template <>
struct DTypeOf<std::int32_t> {
  static constexpr DType value = DType::kInt32;
};
template <>
struct DTypeOf<double> {
  static constexpr DType value = DType::kFloat64;
};
template <>
struct DTypeOf<std::int64_t> {
  static constexpr DType value = DType::kInt64;
};
template <>
struct DTypeOf<std::uint8_t> {
  static constexpr DType value = DType::kUInt8;
};

/// The DType whose values are T.
template <class T>
inline constexpr DType kDTypeOf = DTypeOf<std::remove_const_t<T>>::value;

/// At most 6 axes, kept inline: trivially copyable, nothing allocated. The constructors check that
/// no size is negative and that the number of values fits in an index (Error kShape). A shape
/// without axes is that of a scalar: size 1.
class Shape {
 public:
  static constexpr int kMaxAxes = 6;

  Shape() = default;
  Shape(std::initializer_list<index> sizes);
  explicit Shape(std::span<const index> sizes);

  int axes() const { return axes_; }
  /// The size of an axis; -1 is the last one. Throws kShape if there is no such axis.
  index operator[](int axis) const;
  index front() const { return (*this)[0]; }
  index back() const { return (*this)[-1]; }
  const index* begin() const { return sizes_; }
  const index* end() const { return sizes_ + axes_; }

  /// The number of values: the product of the sizes.
  index size() const { return size_; }

  /// This shape with one axis replaced.
  Shape with(int axis, index size) const;

  friend bool operator==(const Shape& a, const Shape& b);

 private:
  int resolve(int axis) const;

  index sizes_[kMaxAxes] = {};
  index size_ = 1;
  int axes_ = 0;
};

/// "[2, 5]".
std::string to_string(const Shape& shape);
/// "[B=2, T=5]": each name goes with one axis; an axis without a name is a number alone.
std::string to_string(const Shape& shape, std::initializer_list<std::string_view> names);

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
