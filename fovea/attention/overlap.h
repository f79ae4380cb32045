// SPDX-License-Identifier: Apache-2.0
// The memory that a call touches: no output may overlap an input or another output.
#pragma once

#include <array>
#include <cstddef>
#include <string_view>

#include "fovea/attention/view.h"
#include "fovea/base/view.h"

namespace fovea::detail {

/// An axis of a view: its size and its stride, in values.
struct MemoryAxis {
  index size, stride;
};

/// Runs of `width` contiguous values along three axes; none if a size is 0.
struct MemoryView {
  std::string_view name;
  const void* data;
  index value_bytes;
  index width;
  std::array<MemoryAxis, 3> axes;
};

template <class T>
MemoryView memory_view(std::string_view name, const View<T>& v) {
  return {name,
          v.data,
          sizeof(T),
          v.width,
          {{{v.batch, v.batch_stride}, {v.length, v.length_stride}, {v.heads, v.head_stride}}}};
}
template <class T>
MemoryView memory_view(std::string_view name, const RowView<T>& v) {
  return {name,
          v.data,
          sizeof(T),
          1,
          {{{v.batch, v.batch_stride}, {v.heads, v.head_stride}, {v.length, v.length_stride}}}};
}
template <class T>
MemoryView memory_view(std::string_view name, const ScoreView<T>& v) {
  return {name,
          v.data,
          sizeof(T),
          v.keys,
          {{{v.batch, v.batch_stride}, {v.heads, v.head_stride}, {v.queries, v.query_stride}}}};
}
template <class T>
MemoryView memory_view(std::string_view name, const Vec<T>& v) {
  return {name, v.data, sizeof(T), v.size, {{{1, 0}, {1, 0}, {1, 0}}}};
}
template <class T>
MemoryView memory_view(std::string_view name, const Rows<T>& v) {
  return {name, v.data, sizeof(T), v.columns, {{{v.rows, v.stride}, {1, 0}, {1, 0}}}};
}

/// From the first byte that a view touches to the last, as addresses; empty if it touches none.
struct AddressRange {
  index begin, end;
};

/// Does any byte belong to both? Views may interleave without overlapping, as the columns of
/// one projection do. The answer is exact if the strides of both views together are nested:
/// each at least as long as the span of all shorter ones, as in two views of the same rows.
/// Otherwise a search of at most 256 steps decides. It never reports an overlap that does not
/// exist, but may miss one that does. Throws Error(kShape) for a span of more than 2^60
/// bytes.
bool overlap(const MemoryView& a, const MemoryView& b);

}  // namespace fovea::detail

namespace fovea {

/// The views of one call. Allocates nothing. From the 65th view on, outputs are compared with the
/// first 64 views, and inputs with none. Names must outlive it.
class OverlapCheck {
 public:
  template <class V>
  void read(std::string_view name, const V& view) {
    if (view.data != nullptr) add_read(detail::memory_view(name, view));
  }
  /// Throws Error(kShape) that names both views if this one overlaps an earlier one.
  template <class V>
  void write(std::string_view name, const V& view) {
    if (view.data != nullptr) add_written(detail::memory_view(name, view));
  }

 private:
  static constexpr std::size_t kMost = 64;

  struct Place {
    detail::MemoryView view;
    detail::AddressRange span;
  };

  void add(const Place& place);
  void add_read(const detail::MemoryView& view);
  void add_written(const detail::MemoryView& view);

  std::array<Place, kMost> places_;
  std::size_t count_ = 0;
};

}  // namespace fovea
