// SPDX-License-Identifier: Apache-2.0
#include "fovea/tensor/tensor.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>
#include <utility>

#include "fovea/base/check.h"
#include "fovea/base/memory.h"

namespace fovea {

namespace {

struct DTypeInfo {
  std::string_view name;
  index byte_size;
};
constexpr DTypeInfo kInfo[] = {{"float32", 4}, {"bfloat16", 2}, {"int32", 4},
                               {"float64", 8}, {"int64", 8},    {"uint8", 1}};

}  // namespace

std::string_view to_string(DType dtype) { return kInfo[static_cast<int>(dtype)].name; }

index byte_size(DType dtype) { return kInfo[static_cast<int>(dtype)].byte_size; }

static_assert(std::is_trivially_copyable_v<Shape>);

namespace {

std::string joined(std::span<const index> sizes) {
  std::string text;
  for (const index size : sizes) {
    if (!text.empty()) text += ", ";
    text += std::to_string(size);
  }
  return "[" + text + "]";
}

}  // namespace

Shape::Shape(std::initializer_list<index> sizes) : Shape(std::span(sizes.begin(), sizes.size())) {}

Shape::Shape(std::span<const index> sizes) {
  check(sizes.size() <= kMaxAxes, "shape: at most {} axes; got {}", kMaxAxes, sizes.size());
  axes_ = static_cast<int>(sizes.size());
  std::copy(sizes.begin(), sizes.end(), sizes_);
  // A zero makes the whole product zero and would hide an overflow, so the other sizes are
  // multiplied apart.
  index nonzero = 1;
  for (const index size : sizes) {
    check(size >= 0, "shape: sizes must not be negative; got {}", joined(sizes));
    size_ *= size == 0 ? 0 : 1;
    if (size == 0) continue;
    check(nonzero <= std::numeric_limits<index>::max() / size,
          "shape: {} has more values than can be counted", joined(sizes));
    nonzero *= size;
  }
  size_ *= nonzero;
}

int Shape::resolve(int axis) const {
  const int resolved = axis < 0 ? axis + axes_ : axis;
  check(resolved >= 0 && resolved < axes_, "shape: {} has no axis {}", to_string(*this), axis);
  return resolved;
}

index Shape::operator[](int axis) const { return sizes_[resolve(axis)]; }

Shape Shape::with(int axis, index size) const {
  index sizes[kMaxAxes];
  std::copy(begin(), end(), sizes);
  sizes[resolve(axis)] = size;
  return Shape(std::span<const index>(sizes, static_cast<std::size_t>(axes_)));
}

bool operator==(const Shape& a, const Shape& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end());
}

std::string to_string(const Shape& shape) { return joined({shape.begin(), shape.end()}); }

std::string to_string(const Shape& shape, std::initializer_list<std::string_view> names) {
  std::string text;
  auto axis_name = names.begin();
  for (const index size : shape) {
    if (!text.empty()) text += ", ";
    if (axis_name != names.end()) text += std::string(*axis_name++) + "=";
    text += std::to_string(size);
  }
  return "[" + text + "]";
}

namespace {

template <class To, class From>
To whole(From x) {
  bool fits = false;
  if constexpr (std::is_integral_v<From>) {
    fits = std::in_range<To>(x);
  } else {
    // The largest whole number may not be representable as a double; the one after it is.
    constexpr double kBegin = static_cast<double>(std::numeric_limits<To>::min());
    constexpr double kEnd = 2.0 * (std::uint64_t{1} << (std::numeric_limits<To>::digits - 1));
    const double truncated = std::trunc(static_cast<double>(x));
    fits = truncated >= kBegin && truncated < kEnd;
  }
  check(fits, "tensor: {} cannot become {} {}", x, sizeof(To) == 1 ? "a" : "an",
        to_string(kDTypeOf<To>));
  return static_cast<To>(x);
}

template <class To, class From>
To converted(From x) {
  if constexpr (std::is_same_v<From, BFloat16>) {
    return converted<To>(to_float(x));
  } else if constexpr (std::is_same_v<To, BFloat16>) {
    if constexpr (std::is_same_v<From, float>)
      return to_bfloat16(x);
    else
      return to_bfloat16(static_cast<double>(x));
  } else if constexpr (std::is_integral_v<To>) {
    return whole<To>(x);
  } else {
    return static_cast<To>(x);
  }
}

/// Calls f with a null pointer of the C++ type of `dtype`.
template <class F>
void with_type(DType dtype, F&& f) {
  switch (dtype) {
    case DType::kFloat32:
      return f(static_cast<float*>(nullptr));
    case DType::kBFloat16:
      return f(static_cast<BFloat16*>(nullptr));
    case DType::kInt32:
      return f(static_cast<std::int32_t*>(nullptr));
    case DType::kFloat64:
      return f(static_cast<double*>(nullptr));
    case DType::kInt64:
      return f(static_cast<std::int64_t*>(nullptr));
    case DType::kUInt8:
      return f(static_cast<std::uint8_t*>(nullptr));
  }
}

}  // namespace

Tensor Tensor::empty(const Shape& shape, DType dtype) {
  const index bytes = checked_product(shape.size(), fovea::byte_size(dtype), "bytes of a tensor");
  Tensor tensor;
  tensor.memory_ = allocate_aligned(static_cast<std::size_t>(bytes));
  tensor.start_ = tensor.memory_.get();
  tensor.shape_ = shape;
  tensor.dtype_ = dtype;
  return tensor;
}

Tensor Tensor::borrow(std::shared_ptr<std::byte[]> values, const Shape& shape, DType dtype) {
  Tensor tensor;
  tensor.memory_ = std::move(values);
  tensor.start_ = tensor.memory_.get();
  tensor.shape_ = shape;
  tensor.dtype_ = dtype;
  return tensor;
}

Tensor::Tensor(const Shape& shape, DType dtype) : Tensor(empty(shape, dtype)) { fill_zero(); }

Tensor Tensor::reshape(const Shape& shape) const {
  check(defined() && shape.size() == size(), "tensor: cannot reshape {} to {}", describe(),
        to_string(shape));
  Tensor view = *this;
  view.shape_ = shape;
  return view;
}

Tensor Tensor::slice(index begin, index end) const {
  const bool has_rows = defined() && shape_.axes() > 0;
  if (!has_rows) fail(ErrorCode::kShape, "tensor: cannot slice {}", describe());
  if (begin < 0 || begin > end || end > shape_[0]) {
    fail(ErrorCode::kShape, "tensor: rows [{}, {}) do not lie in {}", begin, end, describe());
  }
  Tensor view = *this;
  view.shape_ = shape_.with(0, end - begin);
  if (end > begin) {
    view.start_ += begin * (view.size() / (end - begin)) * fovea::byte_size(dtype_);
  }
  return view;
}

Tensor Tensor::clone() const {
  if (!defined()) return {};
  Tensor copy = empty(shape_, dtype_);
  copy.copy_from(*this);
  return copy;
}

Tensor Tensor::to(DType dtype) const {
  if (!defined() || dtype == dtype_) return clone();
  Tensor result = empty(shape_, dtype);
  with_type(dtype_, [&]<class From>(From*) {
    with_type(dtype, [&]<class To>(To*) {
      const From* in = data<From>();
      To* out = result.data<To>();
      for (index i = 0; i < size(); ++i) out[i] = converted<To>(in[i]);
    });
  });
  return result;
}

void Tensor::copy_from(const Tensor& source) {
  check(shape_ == source.shape_ && dtype_ == source.dtype_ && defined() == source.defined(),
        "tensor: cannot copy {} into {}", source.describe(), describe());
  if (byte_size() > 0) std::memmove(start_, source.start_, static_cast<std::size_t>(byte_size()));
}

void Tensor::fill_zero() {
  if (byte_size() > 0) std::memset(start_, 0, static_cast<std::size_t>(byte_size()));
}

std::string Tensor::describe() const {
  if (!defined()) return "no tensor";
  return std::string(to_string(dtype_)) + " " + to_string(shape_);
}

void Tensor::require(DType dtype) const {
  // Each access to values comes here, so the message is made only if it is needed.
  if (defined() && dtype == dtype_) return;
  fail(ErrorCode::kShape, "tensor: expected {} values; got {}", to_string(dtype), describe());
}

index Tensor::row_count() const {
  index rows = 1;
  for (int axis = 0; axis + 1 < shape_.axes(); ++axis) rows *= shape_[axis];
  return rows;
}

index Tensor::column_count() const { return shape_.axes() == 0 ? 1 : shape_.back(); }

}  // namespace fovea
