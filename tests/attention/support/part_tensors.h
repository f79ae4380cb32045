// SPDX-License-Identifier: Apache-2.0
// The biases of the table of parts (parts/part_table.h), with tensors drawn at random: tests that
// loop over them look at a new one without a word about it.
#pragma once

#include <algorithm>
#include <cmath>
#include <numeric>
#include <string_view>
#include <vector>

#include "fovea/parts/part_table.h"
#include "tests/attention/support/call.h"
#include "tests/support/part_range.h"

namespace fovea::testing {

/// The tensor of a part, and its gradient.
template <class V>
struct PartTensor {
  std::size_t number;  ///< of the row
  std::vector<index> shape;
  std::vector<V> x, dx;

  const AttentionPart& part() const { return attention_parts()[number]; }
};

/// The size of an axis that a tensor alone has: buckets of t5, s of shaw_k.
inline constexpr index kOwnAxis = 8;

/// A vector is one row.
template <class V>
PartViews<V> part_views(const std::vector<index>& shape, const V* x, V* dx) {
  if (shape.size() == 4) {
    return {.scores = ScoreView<const V>::contiguous(x, shape[0], shape[1], shape[2], shape[3]),
            .dscores = ScoreView<V>::contiguous(dx, shape[0], shape[1], shape[2], shape[3])};
  }
  const index rows = shape.size() == 1 ? 1 : shape[0];
  return {.values = {x, rows, shape.back()}, .gradient = {dx, rows, shape.back()}};
}

/// Normal numbers. Where the part has a range, numbers in it, so that the gradient is that of the
/// forward; slopes are positive and small.
template <class V>
PartTensor<V> drawn_part(std::size_t number, const AttentionSizes& sizes) {
  const AttentionPart& part = attention_parts()[number];
  const auto shape = part_shape(part, sizes, kOwnAxis);
  const index n = std::accumulate(shape.begin(), shape.end(), index{1}, std::multiplies<>());
  std::vector<V> x = normals<V>(100 + number, n);
  const auto [least, most] = inside(part.range);
  Random random(101, RandomUse::kTest, number);
  for (index i = 0; i < n; ++i) {
    V& one = x[static_cast<std::size_t>(i)];
    if (part.start == PartStart::kSlopes) one = static_cast<V>(std::exp2(-1 - 2 * (i % 3)));
    if (is_bounded(part.range)) one = static_cast<V>(random.uniform(least, most));
  }
  return {number, shape, x, x};
}

/// The part alone, of a tensor at x.
template <class V>
Bias<V> bias_of_part(std::size_t number, const PartViews<V>& views) {
  PartTensors<V> tensors{};
  tensors[number] = views;
  return make_attention<V>({.t5_max_distance = 20}, tensors).bias;
}

template <class V>
Bias<V> bias_of(PartTensor<V>& tensor) {
  return bias_of_part(tensor.number,
                      part_views<V>(tensor.shape, tensor.x.data(), tensor.dx.data()));
}

/// The numbers of the rows that add a bias with a tensor to a call.
inline const std::vector<std::size_t>& bias_rows() {
  static const std::vector<std::size_t> rows = [] {
    std::vector<std::size_t> biases;
    for (std::size_t n = 0; n < attention_parts().size(); ++n) {
      const AttentionPart& part = attention_parts()[n];
      if (part.tensor.empty() || part.score) continue;
      PartTensor<float> tensor = drawn_part<float>(n, {1, 1, 1, 1, 1, 1, 1});
      if (!bias_of(tensor).empty()) biases.push_back(n);
    }
    return biases;
  }();
  return rows;
}

}  // namespace fovea::testing
