// SPDX-License-Identifier: Apache-2.0
// The checks on entry: they report an invalid call before anything is computed.
#pragma once

#include <array>
#include <string_view>

#include "fovea/attention/attention.h"

namespace fovea {

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

/// An upper bound of the number of rows of tiles, over queries and keys, in all heads. A call keeps
/// a few numbers for each.
template <class T>
double rows_of_tiles(const Attention<T>& attention, const AttentionInputs<T>& in);
/// Throws Error(kShape or kOptionValue) unless everything fits together.
template <class T>
void check_attention(const Attention<T>& attention, const AttentionInputs<T>& in);
/// The rows of a [B, H, L] that is written: shape, strides, data, no overlap.
template <class T>
void check_rows_written(std::string_view name, const RowView<T>& v, index B, index H, index L,
                        const char* length = "T");
/// The rows of a [.., .., .., ..] that is written, likewise.
template <class V>
void check_scores_written(std::string_view name, const ScoreView<V>& v,
                          const std::array<index, 4>& shape);
template <class T>
void check_outputs(const Attention<T>& attention, const AttentionInputs<T>& in,
                   const AttentionOutputs<T>& out);
template <class T>
void check_gradients(const Attention<T>& attention, const AttentionInputs<T>& in,
                     const AttentionSaved<T>& saved, const AttentionGradients<T>& gradients);

}  // namespace fovea
