// SPDX-License-Identifier: Apache-2.0
#include "fovea/kernel/over_time.h"

#include <algorithm>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "fovea/kernel/over_time.cc"
#include "hwy/foreach_target.h"  // compiles this file once for each instruction set
//
#include "fovea/simd/simd-inl.h"

// Where the maximum was is not stored: the backward has to write every row of dx anyway, and finds
// it by reading x once more.

HWY_BEFORE_NAMESPACE();
namespace fovea {
namespace HWY_NAMESPACE {
namespace {

// The maximum of some columns of one sequence.
template <class T>
void Max(Rows<const T> x, T* y) {
  ForEachLane<T>(x.columns, [=](auto lanes, index c) {
    auto most = lanes.Set(T{0});
    if (x.rows > 0) most = lanes.Load(x[0] + c);
    for (index n = 1; n < x.rows; ++n) {
      const auto value = lanes.Load(x[n] + c);
      // The first NaN stays; nothing is above a NaN.
      const auto higher = hn::And(hn::Not(hn::Le(value, most)), hn::Eq(most, most));
      most = hn::IfThenElse(higher, value, most);
    }
    lanes.Store(most, y + c);
  });
}

template <class T>
void MaxGradient(Rows<const T> x, const T* y, const T* dy, Rows<T> dx) {
  ForEachLane<T>(x.columns, [=](auto lanes, index c) {
    const auto most = lanes.Load(y + c), zero = lanes.Set(T{0});
    // Not Ne: it is false for NaN with some instruction sets.
    const auto is_nan = hn::Not(hn::Eq(most, most));
    auto left = lanes.Load(dy + c);  // what no row has got yet
    for (index n = 0; n < x.rows; ++n) {
      const auto value = lanes.Load(x[n] + c);
      const auto here = hn::Or(hn::Eq(value, most), hn::And(is_nan, hn::Not(hn::Eq(value, value))));
      lanes.Store(hn::IfThenElse(here, left, zero), dx[n] + c);
      left = hn::IfThenElse(here, zero, left);
    }
  });
}

auto MaxKernel() { return PerPrecision{Max<float>, Max<double>}; }
auto MaxGradientKernel() { return PerPrecision{MaxGradient<float>, MaxGradient<double>}; }

// The mean of some columns of one sequence, which has a row at least.
template <class T>
void Mean(Rows<const T> x, T* y) {
  ForEachLane<T>(x.columns, [=](auto lanes, index c) {
    auto sum = lanes.Load(x[0] + c);
    for (index n = 1; n < x.rows; ++n) sum = hn::Add(sum, lanes.Load(x[n] + c));
    lanes.Store(hn::Div(sum, lanes.Set(static_cast<T>(x.rows))), y + c);
  });
}

template <class T>
void MeanGradient(const T* dy, Rows<T> dx) {
  ForEachLane<T>(dx.columns, [=](auto lanes, index c) {
    const auto share = hn::Div(lanes.Load(dy + c), lanes.Set(static_cast<T>(dx.rows)));
    for (index n = 0; n < dx.rows; ++n) lanes.Store(share, dx[n] + c);
  });
}

auto MeanKernel() { return PerPrecision{Mean<float>, Mean<double>}; }
auto MeanGradientKernel() { return PerPrecision{MeanGradient<float>, MeanGradient<double>}; }

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace fovea
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include "fovea/base/profile.h"
namespace fovea {
namespace {

HWY_EXPORT(MaxKernel);
HWY_EXPORT(MaxGradientKernel);

}  // namespace

template <class T>
void max_over_time_forward(const Context& ctx, InRows<T> x, Vec<const std::int32_t> offsets,
                           Rows<T> y) {
  check_rows("max_over_time", "y", y, y.rows, x.columns);
  check_offsets("max_over_time", offsets, y.rows, x.rows);
  const auto forward = FOVEA_DISPATCH(MaxKernel)().of<T>();
  const ProfileScope scope(ctx, pass_over<T>("max over time", x.rows, x.columns, 1));
  for_each_strip(ctx, offsets, x.columns, [&](index s, index begin, index end) {
    forward(x.slice(offsets[s], offsets[s + 1]).columns_slice(begin, end), y[s] + begin);
  });
}

template <class T>
void max_over_time_backward(const Context& ctx, const MaxOverTimeBackward<T>& a) {
  check_rows("max_over_time_backward", "y", a.y, a.y.rows, a.x.columns);
  check_rows("max_over_time_backward", "dy", a.dy, a.y.rows, a.x.columns);
  check_rows("max_over_time_backward", "dx", a.dx, a.x.rows, a.x.columns);
  check_offsets("max_over_time", a.offsets, a.y.rows, a.x.rows);
  const auto backward = FOVEA_DISPATCH(MaxGradientKernel)().of<T>();
  const ProfileScope scope(ctx, pass_over<T>("max over time backward", a.x.rows, a.x.columns, 2));
  for_each_strip(ctx, a.offsets, a.x.columns, [&](index s, index begin, index end) {
    const index first = a.offsets[s], last = a.offsets[s + 1];
    backward(a.x.slice(first, last).columns_slice(begin, end), a.y[s] + begin, a.dy[s] + begin,
             a.dx.slice(first, last).columns_slice(begin, end));
  });
}

#define FOVEA_INSTANTIATE(T)                                                                  \
  template void max_over_time_forward(const Context&, Rows<const T>, Vec<const std::int32_t>, \
                                      Rows<T>);                                               \
  template void max_over_time_backward(const Context&, const MaxOverTimeBackward<T>&);
FOVEA_INSTANTIATE(float)
FOVEA_INSTANTIATE(double)
#undef FOVEA_INSTANTIATE

namespace {

HWY_EXPORT(MeanKernel);
HWY_EXPORT(MeanGradientKernel);

}  // namespace

template <class T>
void mean_over_time_forward(const Context& ctx, InRows<T> x, Vec<const std::int32_t> offsets,
                            Rows<T> y) {
  check_rows("mean_over_time", "y", y, y.rows, x.columns);
  check_offsets("mean_over_time", offsets, y.rows, x.rows);
  const auto forward = FOVEA_DISPATCH(MeanKernel)().of<T>();
  const ProfileScope scope(ctx, pass_over<T>("mean over time", x.rows, x.columns, 1));
  for_each_strip(ctx, offsets, x.columns, [&](index s, index begin, index end) {
    if (offsets[s] == offsets[s + 1]) {
      std::fill(y[s] + begin, y[s] + end, T{0});
    } else {
      forward(x.slice(offsets[s], offsets[s + 1]).columns_slice(begin, end), y[s] + begin);
    }
  });
}

template <class T>
void mean_over_time_backward(const Context& ctx, InRows<T> dy, Vec<const std::int32_t> offsets,
                             Rows<T> dx) {
  check_rows("mean_over_time_backward", "dy", dy, dy.rows, dx.columns);
  check_offsets("mean_over_time_backward", offsets, dy.rows, dx.rows);
  const auto backward = FOVEA_DISPATCH(MeanGradientKernel)().of<T>();
  const ProfileScope scope(ctx, pass_over<T>("mean over time backward", dx.rows, dx.columns, 1));
  for_each_strip(ctx, offsets, dx.columns, [&](index s, index begin, index end) {
    backward(dy[s] + begin, dx.slice(offsets[s], offsets[s + 1]).columns_slice(begin, end));
  });
}

#define FOVEA_INSTANTIATE(T)                                                                    \
  template void mean_over_time_forward(const Context&, Rows<const T>, Vec<const std::int32_t>,  \
                                       Rows<T>);                                                \
  template void mean_over_time_backward(const Context&, Rows<const T>, Vec<const std::int32_t>, \
                                        Rows<T>);
FOVEA_INSTANTIATE(float)
FOVEA_INSTANTIATE(double)
#undef FOVEA_INSTANTIATE

}  // namespace fovea
#endif  // HWY_ONCE
