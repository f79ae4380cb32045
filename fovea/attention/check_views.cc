// SPDX-License-Identifier: Apache-2.0
#include "fovea/attention/check_views.h"

#include <algorithm>
#include <cstdint>

#include "fovea/base/check.h"
#include "fovea/base/precision.h"

namespace fovea::detail {

const Hint kShapesOfACall{
    "q is [B, T, H, D], k [B, S, G, D], v [B, S, G, Dv], o and its gradient [B, T, H, Dv], lse "
    "[B, H, T]; dq, dk and dv are as q, k and v"};
const Hint kNoData{"its pointer is null: give that of its first value"};

namespace {

// Lengths, offsets, the counters of dropout and the keys of TopK are numbers of 32 bits.
constexpr index kMostOfAnAxis = (index{1} << 31) - 1;
// The most values of a tensor, whatever its strides: its size in bytes cannot overflow.
constexpr index kMostValues = index{1} << 56;

constexpr Hint kGiveIt{"give a view of that shape, such as View<float>::contiguous(data, ...)"};
constexpr Hint kUpwards{"sizes and strides count from 0 upwards: copy what runs backwards"};
struct Axis {
  index size, stride;
};

// Rows of `width` values must not overlap: results are written to them.
void check_apart(std::string_view name, std::array<Axis, 3> axes, index width) {
  if (std::any_of(axes.begin(), axes.end(), [](Axis axis) { return axis.size == 0; })) return;
  std::sort(axes.begin(), axes.end(), [](Axis a, Axis b) { return a.stride < b.stride; });
  index extent = width;
  for (const Axis& axis : axes) {
    if (axis.size == 1) continue;
    check(axis.stride >= extent, Hint{"give each row memory of its own"},
          "attention: {} is written, so its rows must not overlap; a stride is {}, and what it "
          "steps over takes {}",
          name, axis.stride, extent);
    const index steps = checked_product(axis.size - 1, axis.stride, name);
    check(steps <= kMostValues - extent, "attention: {} spans more than {} values", name,
          kMostValues);
    extent += steps;
  }
}

}  // namespace

template <class T>
void check_view(std::string_view name, const View<T>& v) {
  check(!is_left_out(v), kGiveIt, "attention: {} was not given", name);
  check(v.batch >= 0 && v.length >= 0 && v.heads >= 0 && v.width >= 0, kUpwards,
        "attention: {} has a negative size: [{}, {}, {}, {}]", name, v.batch, v.length, v.heads,
        v.width);
  check(std::max({v.batch, v.length, v.heads, v.width}) <= kMostOfAnAxis,
        Hint{"cut the tensor into several calls"},
        "attention: no axis of {} may be longer than {}; it is [{}, {}, {}, {}]", name,
        kMostOfAnAxis, v.batch, v.length, v.heads, v.width);
  check(v.batch_stride >= 0 && v.length_stride >= 0 && v.head_stride >= 0, kUpwards,
        "attention: {} has a negative stride: {}, {}, {}", name, v.batch_stride, v.length_stride,
        v.head_stride);
  const index rows = checked_product(checked_product(v.batch, v.length, name), v.heads, name);
  check(rows == 0 || v.width <= kMostValues / rows,
        "attention: {} may count at most {} values; it is [{}, {}, {}, {}]", name, kMostValues,
        v.batch, v.length, v.heads, v.width);
  const bool has_values = v.batch > 0 && v.length > 0 && v.heads > 0 && v.width > 0;
  check(!has_values || v.data != nullptr, kNoData, "attention: {} has a shape but no data", name);
}

template <class T>
void check_like(std::string_view name, const View<T>& v, const std::array<index, 4>& shape) {
  const auto [B, L, H, W] = shape;
  check(!is_left_out(v), kGiveIt, "attention: {} was not given; it must be [{}, {}, {}, {}]", name,
        B, L, H, W);
  check_view(name, v);
  check(v.batch == B && v.length == L && v.heads == H && v.width == W, kShapesOfACall,
        "attention: {} must be [{}, {}, {}, {}]; it is [{}, {}, {}, {}]", name, B, L, H, W, v.batch,
        v.length, v.heads, v.width);
}

template <class T>
void check_written(std::string_view name, const View<T>& v, const std::array<index, 4>& shape) {
  const auto [B, L, H, W] = shape;
  check_like(name, v, shape);
  check_apart(name, {{{B, v.batch_stride}, {L, v.length_stride}, {H, v.head_stride}}}, W);
}

template <class T>
void check_rows(std::string_view name, const RowView<T>& v, const std::array<index, 3>& shape,
                const char* length) {
  const auto [B, H, L] = shape;
  const bool fits = v.batch == B && v.heads == H && v.length == L;
  check(fits || !is_left_out(v), kGiveIt,
        "attention: {} was not given; it must be [B={}, H={}, {}={}]", name, B, H, length, L);
  check(fits, kShapesOfACall, "attention: {} must be [B={}, H={}, {}={}]; it is [{}, {}, {}]", name,
        B, H, length, L, v.batch, v.heads, v.length);
  check(v.batch_stride >= 0 && v.head_stride >= 0 && v.length_stride >= 0, kUpwards,
        "attention: {} has a negative stride: {}, {}, {}", name, v.batch_stride, v.head_stride,
        v.length_stride);
  check(B == 0 || H == 0 || L == 0 || v.data != nullptr, kNoData,
        "attention: {} has a shape but no data", name);
}

template <class T>
void check_rows_written(std::string_view name, const RowView<T>& v,
                        const std::array<index, 3>& shape, const char* length) {
  const auto [B, H, L] = shape;
  check_rows(name, v, shape, length);
  check_apart(name, {{{B, v.batch_stride}, {H, v.head_stride}, {L, v.length_stride}}}, 1);
}

template <class V>
void check_scores_written(std::string_view name, const ScoreView<V>& v,
                          const std::array<index, 4>& shape) {
  const auto [B, H, L, S] = shape;
  const bool fits = v.batch == B && v.heads == H && v.queries == L && v.keys == S;
  check(fits || !is_left_out(v), kGiveIt,
        "attention: {} was not given; it must be [B={}, H={}, {}, {}]", name, B, H, L, S);
  check(fits, "attention: {} must be [B={}, H={}, {}, {}]; it is [{}, {}, {}, {}]", name, B, H, L,
        S, v.batch, v.heads, v.queries, v.keys);
  check(v.batch_stride >= 0 && v.head_stride >= 0 && v.query_stride >= 0, kUpwards,
        "attention: {} has a negative stride: {}, {}, {}", name, v.batch_stride, v.head_stride,
        v.query_stride);
  check(B == 0 || H == 0 || L == 0 || S == 0 || v.data != nullptr, kNoData,
        "attention: {} has a shape but no data", name);
  check_apart(name, {{{B, v.batch_stride}, {H, v.head_stride}, {L, v.query_stride}}}, S);
}

#define FOVEA_INSTANTIATE(T)                                                                  \
  template void check_written(std::string_view, const View<T>&, const std::array<index, 4>&); \
  template void check_rows_written(std::string_view, const RowView<T>&,                       \
                                   const std::array<index, 3>&, const char*);
FOVEA_INSTANTIATE(float)
FOVEA_INSTANTIATE(double)
FOVEA_INSTANTIATE(BFloat16)
#undef FOVEA_INSTANTIATE

#define FOVEA_INSTANTIATE(T)                                                                 \
  template void check_view(std::string_view, const View<T>&);                                \
  template void check_like(std::string_view, const View<T>&, const std::array<index, 4>&);   \
  template void check_rows(std::string_view, const RowView<T>&, const std::array<index, 3>&, \
                           const char*);
FOVEA_INSTANTIATE(const float)
FOVEA_INSTANTIATE(const double)
FOVEA_INSTANTIATE(const BFloat16)
#undef FOVEA_INSTANTIATE

#define FOVEA_INSTANTIATE(T)                                                \
  template void check_scores_written(std::string_view, const ScoreView<T>&, \
                                     const std::array<index, 4>&);
FOVEA_INSTANTIATE(float)
FOVEA_INSTANTIATE(double)
FOVEA_INSTANTIATE(std::int32_t)
FOVEA_INSTANTIATE(std::uint8_t)
#undef FOVEA_INSTANTIATE

}  // namespace fovea::detail
