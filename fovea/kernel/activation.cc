// SPDX-License-Identifier: Apache-2.0
#include "fovea/kernel/activation.h"

#include "fovea/kernel/shapes.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "fovea/kernel/activation.cc"
#include "hwy/foreach_target.h"  // compiles this file once for each instruction set
//
#include "fovea/kernel/activation-inl.h"
#include "fovea/simd/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace fovea {
namespace HWY_NAMESPACE {
namespace {

template <class T>
void Forward(Activation f, const T* x, index n, T* y) {
  WithActivation(f, [=](auto constant) {
    ForEachLane<T>(n, [=](auto lanes, index i) {
      lanes.Store(Activate<constant()>(lanes.d, lanes.Load(x + i)), y + i);
    });
  });
}

template <class T>
void Backward(Activation f, const T* x, const T* dy, index n, T* dx) {
  WithActivation(f, [=](auto constant) {
    ForEachLane<T>(n, [=](auto lanes, index i) {
      const auto slope = ActivateGradient<constant()>(lanes.d, lanes.Load(x + i));
      lanes.Store(hn::Mul(slope, lanes.Load(dy + i)), dx + i);
    });
  });
}

auto ForwardKernel() { return PerPrecision{Forward<float>, Forward<double>}; }
auto BackwardKernel() { return PerPrecision{Backward<float>, Backward<double>}; }

template <class T>
void Glu(const T* x, index C, T* y) {
  ForEachLane<T>(C, [=](auto lanes, index c) {
    const auto gate = Sigmoid(lanes.d, lanes.Load(x + C + c));
    lanes.Store(hn::Mul(lanes.Load(x + c), gate.s), y + c);
  });
}

template <class T>
void GluGradient(const T* x, const T* dy, index C, T* dx) {
  ForEachLane<T>(C, [=](auto lanes, index c) {
    const auto gate = Sigmoid(lanes.d, lanes.Load(x + C + c));
    const auto a = lanes.Load(x + c), g = lanes.Load(dy + c);
    lanes.Store(hn::Mul(g, gate.s), dx + c);
    lanes.Store(hn::Mul(g, hn::Mul(a, gate.slope)), dx + C + c);
  });
}

auto GluKernel() { return PerPrecision{Glu<float>, Glu<double>}; }
auto GluGradientKernel() { return PerPrecision{GluGradient<float>, GluGradient<double>}; }

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace fovea
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include "fovea/base/profile.h"
namespace fovea {
namespace {

HWY_EXPORT(ForwardKernel);
HWY_EXPORT(BackwardKernel);

// Operations for one element: a maximum, or an exponential with its multiplications and divisions.
double cost_of(Activation f) { return f == Activation::kNone || f == Activation::kRelu ? 1 : 12; }

}  // namespace

template <class T>
void activation_forward(const Context& ctx, Activation f, InRows<T> x, Rows<T> y) {
  check_rows("activation", "y", y, x.rows, x.columns);
  const auto span = FOVEA_DISPATCH(ForwardKernel)().of<T>();
  const ProfileScope scope(ctx, pass_over<T>("activation", x.rows, x.columns, 2));
  for_spans(ctx, x.rows, x.columns, layout_of(x, y), cost_of(f),
            [=](index r, index c, index n) { span(f, x[r] + c, n, y[r] + c); });
}

template <class T>
void activation_backward(const Context& ctx, Activation f, InRows<T> x, InRows<T> dy, Rows<T> dx) {
  check_rows("activation_backward", "dy", dy, x.rows, x.columns);
  check_rows("activation_backward", "dx", dx, x.rows, x.columns);
  const auto span = FOVEA_DISPATCH(BackwardKernel)().of<T>();
  const ProfileScope scope(ctx, pass_over<T>("activation backward", x.rows, x.columns, 3));
  for_spans(ctx, x.rows, x.columns, layout_of(x, dy, dx), cost_of(f),
            [=](index r, index c, index n) { span(f, x[r] + c, dy[r] + c, n, dx[r] + c); });
}

template void activation_forward(const Context&, Activation, Rows<const float>, Rows<float>);
template void activation_forward(const Context&, Activation, Rows<const double>, Rows<double>);
template void activation_backward(const Context&, Activation, Rows<const float>, Rows<const float>,
                                  Rows<float>);
template void activation_backward(const Context&, Activation, Rows<const double>,
                                  Rows<const double>, Rows<double>);

namespace {

HWY_EXPORT(GluKernel);
HWY_EXPORT(GluGradientKernel);

constexpr double kCost = 12;  // operations for one element: an exponential and a division

}  // namespace

template <class T>
void glu_forward(const Context& ctx, InRows<T> x, Rows<T> y) {
  const index N = x.rows, C = y.columns;
  check_rows("glu", "x", x, y.rows, 2 * C);
  const auto row = FOVEA_DISPATCH(GluKernel)().of<T>();
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
  const auto row = FOVEA_DISPATCH(GluGradientKernel)().of<T>();
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
