// SPDX-License-Identifier: Apache-2.0
#include "fovea/kernel/softmax.h"

#include <cmath>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "fovea/kernel/softmax.cc"
#include "hwy/foreach_target.h"  // compiles this file once for each instruction set
//
#include "fovea/simd/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace fovea {
namespace HWY_NAMESPACE {
namespace {

// x is read twice (the second time from L1), y is written once and rescaled in L1. In a row of only
// -inf the maximum is the lowest finite number, so every exponential and the sum are 0.
// kLog2E explains why it computes 2^(x log2 e) and not e^x.
template <class T>
void ForwardRow(const T* x, index C, T* y) {
  const T max = Max(x, C);
  const T sum = SumOf<T>(C, [=](auto lanes, index c) {
    const auto below = hn::Sub(lanes.Load(x + c), lanes.Set(max));
    const auto e = Exp2OfWeight(lanes.d, hn::Mul(below, lanes.Set(kLog2E<T>)));
    lanes.Store(e, y + c);
    return e;
  });
  const T factor = sum == T{0} ? T{0} : T{1} / sum;
  ForEachLane<T>(C, [=](auto lanes, index c) {
    lanes.Store(hn::Mul(lanes.Load(y + c), lanes.Set(factor)), y + c);
  });
}

template <class T>
void BackwardRow(const T* y, const T* dy, index C, T* dx) {
  const T dot = Dot(y, dy, C);
  ForEachLane<T>(C, [=](auto lanes, index c) {
    const auto centred = hn::Sub(lanes.Load(dy + c), lanes.Set(dot));
    lanes.Store(hn::Mul(lanes.Load(y + c), centred), dx + c);
  });
}

template <class T>
double LogSumExpRow(const T* x, index C) {
  const T max = Max(x, C);
  const T sum = SumOf<T>(C, [=](auto lanes, index c) {
    const auto below = hn::Sub(lanes.Load(x + c), lanes.Set(max));
    return Exp2OfWeight(lanes.d, hn::Mul(below, lanes.Set(kLog2E<T>)));
  });
  return static_cast<double>(max) + std::log(static_cast<double>(sum));
}

auto LogSumExpRowKernel() { return PerPrecision{LogSumExpRow<float>, LogSumExpRow<double>}; }
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
HWY_EXPORT(LogSumExpRowKernel);

// Operations for one element; an exponential counts as several.
constexpr double kForwardCost = 12, kBackwardCost = 4;

}  // namespace

template <class T>
void softmax_forward(const Context& ctx, InRows<T> x, Rows<T> y) {
  const index N = x.rows, C = x.columns;
  check_rows("softmax", "y", y, N, C);
  const auto row = FOVEA_DISPATCH(ForwardRowKernel)().of<T>();
  const ProfileScope scope(ctx, pass_over<T>("softmax", N, C, 2));
  ctx.for_ranges(N, kForwardCost * static_cast<double>(C), [=](index begin, index end) {
    for (index n = begin; n < end; ++n) row(x[n], C, y[n]);
  });
}

template <class T>
void softmax_backward(const Context& ctx, InRows<T> y, InRows<T> dy, Rows<T> dx) {
  const index N = y.rows, C = y.columns;
  check_rows("softmax_backward", "dy", dy, N, C);
  check_rows("softmax_backward", "dx", dx, N, C);
  const auto row = FOVEA_DISPATCH(BackwardRowKernel)().of<T>();
  const ProfileScope scope(ctx, pass_over<T>("softmax backward", N, C, 3));
  ctx.for_ranges(N, kBackwardCost * static_cast<double>(C), [=](index begin, index end) {
    for (index n = begin; n < end; ++n) row(y[n], dy[n], C, dx[n]);
  });
}

template <class T>
void log_sum_exp(const Context& ctx, Rows<const T> x, Vec<double> y) {
  const index N = x.rows, C = x.columns;
  check_vec("log_sum_exp", "y", y, "N", N);
  const auto row = FOVEA_DISPATCH(LogSumExpRowKernel)().of<T>();
  const ProfileScope scope(ctx, pass_over<T>("log sum exp", N, C, 1));
  ctx.for_ranges(N, kForwardCost * static_cast<double>(C), [=](index begin, index end) {
    for (index n = begin; n < end; ++n) y[n] = row(x[n], C);
  });
}

template void log_sum_exp(const Context&, Rows<const float>, Vec<double>);
template void log_sum_exp(const Context&, Rows<const double>, Vec<double>);
template void softmax_forward(const Context&, Rows<const float>, Rows<float>);
template void softmax_forward(const Context&, Rows<const double>, Rows<double>);
template void softmax_backward(const Context&, Rows<const float>, Rows<const float>, Rows<float>);
template void softmax_backward(const Context&, Rows<const double>, Rows<const double>,
                               Rows<double>);

}  // namespace fovea
#endif  // HWY_ONCE
