// SPDX-License-Identifier: Apache-2.0
// The operator's view of a tensor: [batch, length, heads, width], width contiguous, other strides
// free.
#pragma once

#include <algorithm>
#include <string>
#include <type_traits>

#include "fovea/base/types.h"

namespace fovea {

/// Heads are strided, not copied: q, k and v may be columns of one projection. A stride of 0
/// broadcasts (inputs only). Packed sequences lie one after another along `length`, with batch = 1.
template <class T>
struct View {
  T* data = nullptr;
  index batch = 0;
  index length = 0;
  index heads = 0;
  index width = 0;
  index batch_stride = 0;
  index length_stride = 0;
  index head_stride = 0;

  /// [B, L, H, W] without gaps.
  static View contiguous(T* data, index B, index L, index H, index W) {
    return {data, B, L, H, W, L * H * W, H * W, W};
  }
  /// A view of this shape that is contiguous from the same address on.
  View without_gaps() const { return contiguous(data, batch, length, heads, width); }
  /// The row of `width` values at (b, l, h).
  T* row(index b, index l, index h) const {
    return data + b * batch_stride + l * length_stride + h * head_stride;
  }
  bool empty() const { return data == nullptr; }
  operator View<const T>() const requires(!std::is_const_v<T>) {
    return {data, batch, length, heads, width, batch_stride, length_stride, head_stride};
  }
};

/// [B, H, T]: one value for each query row and head, such as the log-sum-exp.
template <class T>
struct RowView {
  T* data = nullptr;
  index batch = 0;
  index heads = 0;
  index length = 0;
  index batch_stride = 0;
  index head_stride = 0;
  index length_stride = 0;

  static RowView contiguous(T* data, index B, index H, index L) {
    return {data, B, H, L, H * L, L, 1};
  }
  T& at(index b, index h, index l) const {
    return data[b * batch_stride + h * head_stride + l * length_stride];
  }
  bool empty() const { return data == nullptr; }
  operator RowView<const T>() const requires(!std::is_const_v<T>) {
    return {data, batch, heads, length, batch_stride, head_stride, length_stride};
  }
};

/// [B or 1, H or 1, T or 1, S]: one value per score; axes of size 1 broadcast without copies.
template <class T>
struct ScoreView {
  T* data = nullptr;
  index batch = 0;
  index heads = 0;
  index queries = 0;
  index keys = 0;
  index batch_stride = 0;
  index head_stride = 0;
  index query_stride = 0;

  static ScoreView contiguous(T* data, index B, index H, index T_, index S) {
    return {data, B, H, T_, S, H * T_ * S, T_ * S, S};
  }
  T& at(index b, index h, index i, index j) const { return row(b, h, i)[j]; }
  T* row(index b, index h, index i) const {
    return data + (batch == 1 ? 0 : b * batch_stride) + (heads == 1 ? 0 : h * head_stride) +
           (queries == 1 ? 0 : i * query_stride);
  }
  bool empty() const { return data == nullptr; }
  operator ScoreView<const T>() const requires(!std::is_const_v<T>) {
    return {data, batch, heads, queries, keys, batch_stride, head_stride, query_stride};
  }
};

}  // namespace fovea

namespace fovea::detail {

/// Writes `value` everywhere. An empty view is left alone.
template <class T>
void fill(const View<T>& view, std::type_identity_t<T> value) {
  for (index b = 0; !view.empty() && b < view.batch; ++b) {
    for (index l = 0; l < view.length; ++l) {
      for (index h = 0; h < view.heads; ++h) std::fill_n(view.row(b, l, h), view.width, value);
    }
  }
}
template <class T>
void fill(const RowView<T>& view, std::type_identity_t<T> value) {
  for (index b = 0; !view.empty() && b < view.batch; ++b) {
    for (index h = 0; h < view.heads; ++h) {
      for (index l = 0; l < view.length; ++l) view.at(b, h, l) = value;
    }
  }
}
template <class T>
void fill(const ScoreView<T>& view, std::type_identity_t<T> value) {
  for (index b = 0; !view.empty() && b < view.batch; ++b) {
    for (index h = 0; h < view.heads; ++h) {
      for (index i = 0; i < view.queries; ++i) std::fill_n(view.row(b, h, i), view.keys, value);
    }
  }
}

}  // namespace fovea::detail
