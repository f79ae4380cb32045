// SPDX-License-Identifier: Apache-2.0
#include "fovea/attention/fused/saved_lse.h"

#include <cmath>
#include <limits>

#include "fovea/attention/fused/forward.h"

namespace fovea::detail {

namespace {

// Whether the rounding error of lse may be more than 6e-5: half an ulp of 1024 in float, and of
// 2^39 in double. An empty row has lse -infinity, which is exact.
template <class T>
bool is_rounded(T lse) {
  constexpr T kLarge = T{1} / (std::numeric_limits<T>::epsilon() * T{1 << 13});
  return std::isfinite(lse) && std::abs(lse) > kLarge;
}

// Calls f(row) for every row of [B, H, T], in this order.
template <class T, class F>
void for_each_row(const RowView<const T>& rows, F&& f) {
  for (index b = 0; b < rows.batch; ++b) {
    for (index h = 0; h < rows.heads; ++h) {
      for (index i = 0; i < rows.length; ++i) f(rows.at(b, h, i));
    }
  }
}

}  // namespace

template <class T>
SavedLse<T>::SavedLse(const Context& ctx, const LoweredCall<T>& call,
                      const AttentionSaved<T>& saved)
    : saved_(saved) {
  if (saved.lse.empty() || !saved.lse_low.empty()) return;
  bool any = false;
  for_each_row(saved.lse, [&](Wide<T> lse) { any = any || is_rounded(lse); });
  if (any) compute(ctx, call);
}

template <class T>
void SavedLse<T>::compute(const Context& ctx, const LoweredCall<T>& call) {
  AttentionInputs<T> in = call.in();
  const index B = in.q.batch, H = in.q.heads, T_ = in.q.length;
  const index rows = B * H * T_;
  rows_ = allocate_aligned(static_cast<std::size_t>(rows) * (2 * sizeof(Wide<T>) + sizeof(T)));
  auto* const lse_data = reinterpret_cast<Wide<T>*>(rows_.get());
  Wide<T>* const low_data = lse_data + rows;
  Attention<Wide<T>> scores = call.attention();
  scores.dropout = {};
  scores.values = {};
  scores.observe = {};
  in.v.width = 1;  // o is not wanted
  const auto lse = RowView<Wide<T>>::contiguous(lse_data, B, H, T_);
  const auto low = RowView<Wide<T>>::contiguous(low_data, B, H, T_);
  auto* const o = reinterpret_cast<T*>(low_data + rows);
  const AttentionOutputs<T> out{View<T>::contiguous(o, B, T_, H, 1), lse, low};
  clear_uncovered(call.sequences(), out);
  fused_forward(ctx, LoweredCall<T>(ctx, scores, in), out);
  // Other rows keep their lse, so that their bits do not depend on the rest of the call.
  index row = 0;
  for_each_row(saved_.lse, [&](Wide<T> given) {
    if (!is_rounded(given)) {
      lse_data[row] = given;
      low_data[row] = 0;
    }
    ++row;
  });
  saved_.lse = lse;
  saved_.lse_low = low;
}

template class SavedLse<float>;
template class SavedLse<double>;
template class SavedLse<BFloat16>;

}  // namespace fovea::detail
