// SPDX-License-Identifier: Apache-2.0
#include "fovea/kernel/glu.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "fovea/kernel/glu.cc"
#include "hwy/foreach_target.h"  // compiles this file once for each instruction set
//
#include "fovea/simd/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace fovea {
namespace HWY_NAMESPACE {
namespace {

template <class T>
void ForwardRow(const T* x, index C, T* y) {
  ForEachLane<T>(C, [=](auto lanes, index c) {
    const auto gate = Sigmoid(lanes.d, lanes.Load(x + C + c));
    lanes.Store(hn::Mul(lanes.Load(x + c), gate.s), y + c);
  });
}

template <class T>
void BackwardRow(const T* x, const T* dy, index C, T* dx) {
  ForEachLane<T>(C, [=](auto lanes, index c) {
    const auto gate = Sigmoid(lanes.d, lanes.Load(x + C + c));
    const auto a = lanes.Load(x + c), g = lanes.Load(dy + c);
    lanes.Store(hn::Mul(g, gate.s), dx + c);
    lanes.Store(hn::Mul(g, hn::Mul(a, gate.slope)), dx + C + c);
  });
}

auto ForwardRowKernel() { return PerPrecision{ForwardRow<float>, ForwardRow<double>}; }
auto BackwardRowKernel() { return PerPrecision{BackwardRow<float>, BackwardRow<double>}; }

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace fovea
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include "fovea/base/profile.h"
namespace fovea {
namespace {

HWY_EXPORT(ForwardRowKernel);
HWY_EXPORT(BackwardRowKernel);

constexpr double kCost = 12;  // operations for one element: an exponential and a division

}  // namespace

template <class T>
void glu_forward(const Context& ctx, InRows<T> x, Rows<T> y) {
  const index N = x.rows, C = y.columns;
  check_rows("glu", "x", x, y.rows, 2 * C);
  const auto row = FOVEA_DISPATCH(ForwardRowKernel)().of<T>();
  const ProfileScope scope(ctx, pass_over<T>("glu", N, C, 3));
  ctx.for_ranges(N, kCost * static_cast<double>(C), [&](index begin, index end) {
    for (index n = begin; n < end; ++n) row(x[n], C, y[n]);
  });
}

template <class T>
void glu_backward(const Context& ctx, InRows<T> x, InRows<T> dy, Rows<T> dx) {
  const index N = x.rows, C = dy.columns;
  check_rows("glu_backward", "x", x, dy.rows, 2 * C);
  check_rows("glu_backward", "dx", dx, N, 2 * C);
  const auto row = FOVEA_DISPATCH(BackwardRowKernel)().of<T>();
  const ProfileScope scope(ctx, pass_over<T>("glu backward", N, C, 5));
  ctx.for_ranges(N, kCost * static_cast<double>(C), [&](index begin, index end) {
    for (index n = begin; n < end; ++n) row(x[n], dy[n], C, dx[n]);
  });
}

template void glu_forward(const Context&, Rows<const float>, Rows<float>);
template void glu_forward(const Context&, Rows<const double>, Rows<double>);
template void glu_backward(const Context&, Rows<const float>, Rows<const float>, Rows<float>);
template void glu_backward(const Context&, Rows<const double>, Rows<const double>, Rows<double>);

}  // namespace fovea
#endif  // HWY_ONCE
