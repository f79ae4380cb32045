// SPDX-License-Identifier: Apache-2.0
// Checks of the views of a call: sizes, strides, and rows that do not overlap.
#pragma once

#include <array>
#include <string_view>

#include "fovea/attention/view.h"

namespace fovea {
struct Hint;  // base/check.h, which a header for users does not include
}  // namespace fovea

namespace fovea::detail {

/// The hint of every error about shapes, and that of an error about a null pointer.
extern const Hint kShapesOfACall, kNoData;

/// Whether a view was not set. Then the error says that it was not given, and not that its sizes
/// are wrong.
template <class T>
bool is_left_out(const View<T>& v) {
  return v.data == nullptr && v.batch == 0 && v.length == 0 && v.heads == 0 && v.width == 0;
}
template <class T>
bool is_left_out(const RowView<T>& v) {
  return v.data == nullptr && v.batch == 0 && v.heads == 0 && v.length == 0;
}
template <class T>
bool is_left_out(const ScoreView<T>& v) {
  return v.data == nullptr && v.batch == 0 && v.heads == 0 && v.queries == 0 && v.keys == 0;
}

/// The views fail with Error(kShape) that names them, the axis and both sizes.
template <class T>
void check_view(std::string_view name, const View<T>& v);
/// A view of this shape.
template <class T>
void check_like(std::string_view name, const View<T>& v, const std::array<index, 4>& shape);
/// A view of this shape that is written, so its rows must not overlap.
template <class T>
void check_written(std::string_view name, const View<T>& v, const std::array<index, 4>& shape);
template <class T>
void check_rows(std::string_view name, const RowView<T>& v, const std::array<index, 3>& shape,
                const char* length = "T");
/// The rows of a [B, H, L] that is written: shape, strides, data, no overlap.
template <class T>
void check_rows_written(std::string_view name, const RowView<T>& v,
                        const std::array<index, 3>& shape, const char* length = "T");
/// The rows of a [.., .., .., ..] that is written, likewise.
template <class V>
void check_scores_written(std::string_view name, const ScoreView<V>& v,
                          const std::array<index, 4>& shape);
}  // namespace fovea::detail
