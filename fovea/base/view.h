// SPDX-License-Identifier: Apache-2.0
// Views: memory that somebody else owns, with its shape. Passed by value.
#pragma once

#include <type_traits>

#include "fovea/base/types.h"

namespace fovea {

/// n contiguous values.
template <class T>
struct Vec {
  T* data = nullptr;
  index size = 0;

  T& operator[](index i) const { return data[i]; }
  T* begin() const { return data; }
  T* end() const { return data + size; }
  bool empty() const { return size == 0; }
  operator Vec<const T>() const requires(!std::is_const_v<T>) { return {data, size}; }
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
