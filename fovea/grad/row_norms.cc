// SPDX-License-Identifier: Apache-2.0
#include "fovea/grad/row_norms.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <type_traits>
#include <vector>

#include "fovea/base/check.h"
#include "fovea/base/memory.h"

namespace fovea {

namespace {

constexpr index kRowsAtOnce = 32;

// Rows of W, as values.
template <class T>
void widen_own_rows(const Parameter& weight, index first, Rows<T> to) {
  if constexpr (std::is_same_v<T, float>) {
    if (weight.blocks != nullptr) {
      std::vector<std::int32_t> ids(static_cast<std::size_t>(to.rows));
      std::iota(ids.begin(), ids.end(), static_cast<std::int32_t>(first));
      return widen_rows(Context(1), *weight.blocks, {ids.data(), to.rows}, to);
    }
  }
  check(weight.blocks == nullptr, "norms of {}: blocks are float32", weight.name);
  const Rows<const T> from = weight.value.rows<T>();
  for (index n = 0; n < to.rows; ++n) std::copy_n(from[first + n], to.columns, to[n]);
}

}  // namespace

template <class T>
T norm_of_row(const T* row, index size) {
  double sum = 0;
  for (index i = 0; i < size; ++i) sum += double{row[i]} * double{row[i]};
  return static_cast<T>(std::sqrt(sum));
}

template <class T>
void norms_of_rows(const Context& context, const Parameter& weight, const LowRank& change,
                   Vec<T> norms) {
  const Rows<const T> a = change.a->value.rows<T>(), b = change.b->value.rows<T>();
  check(norms.size == b.rows, "norms of {}: {} for {} rows", weight.name, norms.size, b.rows);
  const index in = a.columns, rank = a.rows;
  const auto scale = static_cast<T>(change.scale);
  const double work = 2 * static_cast<double>(in) * static_cast<double>(rank + 1);
  context.for_ranges(b.rows, work, [&](index begin, index end) {
    Scratch scratch;
    const Rows<T> rows(scratch.allocate<T>(kRowsAtOnce * in), kRowsAtOnce, in);
    for (index n = begin; n < end; n += kRowsAtOnce) {
      const index count = std::min(kRowsAtOnce, end - n);
      widen_own_rows<T>(weight, change.first + n, rows.slice(0, count));
      for (index i = 0; i < count; ++i) {
        T* const row = rows[i];
        for (index r = 0; r < rank; ++r) {
          const T factor = scale * b[n + i][r];
          const T* const from = a[r];
          for (index c = 0; c < in; ++c) row[c] += factor * from[c];
        }
        norms[n + i] = norm_of_row(row, in);
      }
    }
  });
}

template <class T>
Vec<const T> RowNorms::get(const Context& context, const Parameter& weight, const LowRank& change) {
  const std::uint64_t now = change.a->version + change.b->version + 1;
  if (known_.load(std::memory_order_acquire) != now) {
    const std::lock_guard lock(mutex_);
    if (known_.load(std::memory_order_acquire) != now) {
      const index rows = change.b->value.shape()[0];
      if (!norms_.defined()) norms_ = Tensor::empty({rows}, change.b->value.dtype());
      norms_of_rows<T>(context, weight, change, norms_.vec<T>());
      known_.store(now, std::memory_order_release);
    }
  }
  return norms_.vec<T>();
}

template float norm_of_row(const float*, index);
template double norm_of_row(const double*, index);
template void norms_of_rows(const Context&, const Parameter&, const LowRank&, Vec<float>);
template void norms_of_rows(const Context&, const Parameter&, const LowRank&, Vec<double>);
template Vec<const float> RowNorms::get(const Context&, const Parameter&, const LowRank&);
template Vec<const double> RowNorms::get(const Context&, const Parameter&, const LowRank&);

}  // namespace fovea
