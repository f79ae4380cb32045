// SPDX-License-Identifier: Apache-2.0
#include "fovea/kernel/mean_over_time.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "fovea/kernel/mean_over_time.cc"
#include "hwy/foreach_target.h"  // compiles this file once for each instruction set
//
#include "fovea/simd/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace fovea {
namespace HWY_NAMESPACE {
namespace {

// The mean of some columns of one sequence, which has a row at least.
template <class T>
void Forward(Rows<const T> x, T* y) {
  ForEachLane<T>(x.columns, [=](auto lanes, index c) {
    auto sum = lanes.Load(x[0] + c);
    for (index n = 1; n < x.rows; ++n) sum = hn::Add(sum, lanes.Load(x[n] + c));
    lanes.Store(hn::Div(sum, lanes.Set(static_cast<T>(x.rows))), y + c);
  });
}

template <class T>
void Backward(const T* dy, Rows<T> dx) {
  ForEachLane<T>(dx.columns, [=](auto lanes, index c) {
    const auto share = hn::Div(lanes.Load(dy + c), lanes.Set(static_cast<T>(dx.rows)));
    for (index n = 0; n < dx.rows; ++n) lanes.Store(share, dx[n] + c);
  });
}

auto ForwardKernel() { return PerPrecision{Forward<float>, Forward<double>}; }
auto BackwardKernel() { return PerPrecision{Backward<float>, Backward<double>}; }

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace fovea
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include "fovea/base/profile.h"
#include "fovea/kernel/over_time.h"
namespace fovea {
namespace {

HWY_EXPORT(ForwardKernel);
HWY_EXPORT(BackwardKernel);

}  // namespace

template <class T>
void mean_over_time_forward(const Context& ctx, InRows<T> x, Vec<const std::int32_t> offsets,
                            Rows<T> y) {
  check_rows("mean_over_time", "y", y, y.rows, x.columns);
  check_offsets("mean_over_time", offsets, y.rows, x.rows);
  const auto forward = FOVEA_DISPATCH(ForwardKernel)().of<T>();
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
  const auto backward = FOVEA_DISPATCH(BackwardKernel)().of<T>();
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
