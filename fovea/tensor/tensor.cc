// SPDX-License-Identifier: Apache-2.0
#include "fovea/tensor/tensor.h"

#include <cmath>
#include <cstring>
#include <limits>
#include <utility>

#include "fovea/base/memory.h"

namespace fovea {

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
