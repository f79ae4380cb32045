// SPDX-License-Identifier: Apache-2.0
// Views: a pointer to memory that the caller owns, with its shape. They are passed by value.
#pragma once

#include <iterator>
#include <span>
#include <type_traits>

#include "fovea/base/types.h"

namespace fovea {

/// Contiguous values, with std::data and std::size: std::vector, std::array, std::span, an array.
template <class Values>
concept ContiguousValues = requires(Values& values) {
  *std::data(values);
  std::size(values);
};
template <class Values>
inline constexpr bool kIsSpan = false;
template <class T, std::size_t N>
inline constexpr bool kIsSpan<std::span<T, N>> = true;

/// n contiguous values.
template <class T>
struct Vec {
  T* data = nullptr;
  index size = 0;

  constexpr Vec() noexcept {}
  constexpr Vec(T* first, index n) : data(first), size(n) {}
  /// All values of a std::vector<T>, std::array, std::span or array, which must outlive the view.
  template <class Values>
  requires ContiguousValues<Values>
  constexpr Vec(Values&& values)  // NOLINT: a view of them is as good
      : data(first_of(values)), size(static_cast<index>(std::size(values))) {
    static_assert(std::is_lvalue_reference_v<Values> || kIsSpan<std::remove_cv_t<Values>>,
                  "a view of a temporary vector would dangle: give the vector a name first");
  }

  T& operator[](index i) const { return data[i]; }
  T* begin() const { return data; }
  T* end() const { return data + size; }
  bool empty() const { return size == 0; }
  operator Vec<const T>() const requires(!std::is_const_v<T>) { return {data, size}; }

 private:
  template <class Values>
  static constexpr T* first_of(Values& values) {
    using Value = std::remove_reference_t<decltype(*std::data(values))>;
    constexpr bool fits = std::is_convertible_v<Value(*)[], T(*)[]>;
    static_assert(fits,
                  "a Vec<T> views values of exactly this type T: lengths and offsets are "
                  "std::int32_t, slopes have the type of the call, float or double");
    if constexpr (fits) {
      return std::data(values);
    } else {
      return nullptr;
    }
  }
};

/// [rows, columns]: the values of a row are contiguous, rows lie `stride` values apart.
template <class T>
struct Rows {
  T* data = nullptr;
  index rows = 0;
  index columns = 0;
  index stride = 0;

  Rows() = default;
  Rows(T* d, index r, index c) : data(d), rows(r), columns(c), stride(c) {}
  Rows(T* d, index r, index c, index s) : data(d), rows(r), columns(c), stride(s) {}

  T* operator[](index row) const { return data + row * stride; }
  bool contiguous() const { return stride == columns || rows <= 1; }
  /// Rows [begin, end).
  Rows slice(index begin, index end) const {
    return {data + begin * stride, end - begin, columns, stride};
  }
  /// Columns [begin, end) of every row.
  Rows columns_slice(index begin, index end) const {
    return {data + begin, rows, end - begin, stride};
  }
  operator Rows<const T>() const requires(!std::is_const_v<T>) {
    return {data, rows, columns, stride};
  }
};

}  // namespace fovea
