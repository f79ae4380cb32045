// SPDX-License-Identifier: Apache-2.0
#include "fovea/kernel/elementwise.h"

#include <algorithm>
#include <cstring>
#include <type_traits>

#include "fovea/kernel/shapes.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "fovea/kernel/elementwise.cc"
#include "hwy/foreach_target.h"  // compiles this file once for each instruction set
//
#include "fovea/kernel/activation-inl.h"
#include "fovea/simd/round-inl.h"
#include "fovea/simd/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace fovea {
namespace HWY_NAMESPACE {
namespace {

template <class T>
void AddSpan(const T* a, const T* b, index n, T* y) {
  ForEachLane<T>(n, [=](auto lanes, index i) {
    lanes.Store(hn::Add(lanes.Load(a + i), lanes.Load(b + i)), y + i);
  });
}

template <class T>
void MultiplySpan(const T* a, const T* b, index n, T* y) {
  ForEachLane<T>(n, [=](auto lanes, index i) {
    lanes.Store(hn::Mul(lanes.Load(a + i), lanes.Load(b + i)), y + i);
  });
}

template <class T>
void ScaleSpan(T factor, const T* x, index n, T* y) {
  ForEachLane<T>(n, [=](auto lanes, index i) {
    lanes.Store(hn::Mul(lanes.Load(x + i), lanes.Set(factor)), y + i);
  });
}

auto AddSpanKernel() { return PerPrecision{AddSpan<float>, AddSpan<double>}; }
auto MultiplySpanKernel() { return PerPrecision{MultiplySpan<float>, MultiplySpan<double>}; }
auto ScaleSpanKernel() { return PerPrecision{ScaleSpan<float>, ScaleSpan<double>}; }

// A BFloat16 is one uint16_t.
using HalfTag = hn::Rebind<std::uint16_t, Tag<float>>;

HWY_INLINE Vector<float> Widened(const BFloat16* x) {
  constexpr hn::RebindToUnsigned<Tag<float>> u;
  const auto halves = hn::LoadU(HalfTag(), &x->bits);
  return hn::BitCast(Tag<float>(), hn::ShiftLeft<16>(hn::PromoteTo(u, halves)));
}

void RoundSpan(const float* x, index n, BFloat16* y) {
  constexpr index kN = kLanes<float>;
  constexpr hn::RebindToUnsigned<Tag<float>> u;
  constexpr hn::RebindToSigned<Tag<float>> s;
  index i = 0;
  for (; i + kN <= n; i += kN) {
    const auto rounded = hn::BitCast(u, RoundToBFloat16(hn::LoadU(Tag<float>(), x + i)));
    const auto halves = hn::DemoteTo(HalfTag(), hn::BitCast(s, hn::ShiftRight<16>(rounded)));
    hn::StoreU(halves, HalfTag(), &y[i].bits);
  }
  for (; i < n; ++i) y[i] = to_bfloat16(x[i]);
}

void WidenSpan(const BFloat16* x, index n, float* y) {
  constexpr index kN = kLanes<float>;
  index i = 0;
  for (; i + kN <= n; i += kN) hn::StoreU(Widened(x + i), Tag<float>(), y + i);
  for (; i < n; ++i) y[i] = to_float(x[i]);
}

void AddWidenedSpan(const BFloat16* x, index n, float* y) {
  constexpr index kN = kLanes<float>;
  constexpr Tag<float> d;
  index i = 0;
  for (; i + kN <= n; i += kN) hn::StoreU(hn::Add(hn::LoadU(d, y + i), Widened(x + i)), d, y + i);
  for (; i < n; ++i) y[i] += to_float(x[i]);
}

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

HWY_EXPORT(AddSpanKernel);
HWY_EXPORT(MultiplySpanKernel);
HWY_EXPORT(ScaleSpanKernel);

constexpr double kCost = 1;  // operations for one element

}  // namespace

template <class T>
void add_forward(const Context& ctx, InRows<T> a, InRows<T> b, Rows<T> y) {
  check_rows("add", "b", b, a.rows, a.columns);
  check_rows("add", "y", y, a.rows, a.columns);
  const auto add = FOVEA_DISPATCH(AddSpanKernel)().of<T>();
  const ProfileScope scope(ctx, pass_over<T>("add", a.rows, a.columns, 3));
  for_spans(ctx, a.rows, a.columns, layout_of(a, b, y), kCost,
            [=](index r, index c, index n) { add(a[r] + c, b[r] + c, n, y[r] + c); });
}

template <class T>
void accumulate(const Context& ctx, InRows<T> x, Rows<T> y) {
  check_rows("accumulate", "y", y, x.rows, x.columns);
  add_forward<T>(ctx, y, x, y);
}

template <class T>
void multiply(const Context& ctx, InRows<T> a, InRows<T> b, Rows<T> y) {
  check_rows("multiply", "b", b, a.rows, a.columns);
  check_rows("multiply", "y", y, a.rows, a.columns);
  const auto multiply_span = FOVEA_DISPATCH(MultiplySpanKernel)().of<T>();
  const ProfileScope scope(ctx, pass_over<T>("multiply", a.rows, a.columns, 3));
  for_spans(ctx, a.rows, a.columns, layout_of(a, b, y), kCost,
            [=](index r, index c, index n) { multiply_span(a[r] + c, b[r] + c, n, y[r] + c); });
}

template <class T>
void scale(const Context& ctx, double factor, InRows<T> x, Rows<T> y) {
  check_rows("scale", "y", y, x.rows, x.columns);
  const auto scale_span = FOVEA_DISPATCH(ScaleSpanKernel)().of<T>();
  const T by = static_cast<T>(factor);
  const ProfileScope scope(ctx, pass_over<T>("scale", x.rows, x.columns, 2));
  for_spans(ctx, x.rows, x.columns, layout_of(x, y), kCost,
            [=](index r, index c, index n) { scale_span(by, x[r] + c, n, y[r] + c); });
}

template <class T>
void copy_rows(const Context& ctx, InRows<T> x, Rows<T> y) {
  check_rows("copy_rows", "y", y, x.rows, x.columns);
  const ProfileScope scope(ctx, pass_over<T>("copy", x.rows, x.columns, 2));
  for_spans(ctx, x.rows, x.columns, layout_of(x, y), kCost, [=](index r, index c, index n) {
    std::memmove(y[r] + c, x[r] + c, static_cast<std::size_t>(n) * sizeof(T));
  });
}

template <class T>
void fill(const Context& ctx, std::type_identity_t<T> value, Rows<T> y) {
  const ProfileScope scope(ctx, pass_over<T>("fill", y.rows, y.columns, 1));
  for_spans(ctx, y.rows, y.columns, layout_of(y), kCost,
            [=](index r, index c, index n) { std::fill_n(y[r] + c, n, value); });
}

template <class T>
void add_bias(const Context& ctx, InRows<T> x, InVec<T> bias, Rows<T> y) {
  check_vec("add_bias", "bias", bias, "C", x.columns);
  check_rows("add_bias", "y", y, x.rows, x.columns);
  const auto add = FOVEA_DISPATCH(AddSpanKernel)().of<T>();
  const ProfileScope scope(ctx, pass_over<T>("add bias", x.rows, x.columns, 2));
  for_spans(ctx, x.rows, x.columns, Layout::kStrided, kCost,
            [=](index r, index c, index n) { add(x[r] + c, bias.data + c, n, y[r] + c); });
}

template void add_forward(const Context&, Rows<const float>, Rows<const float>, Rows<float>);
template void add_forward(const Context&, Rows<const double>, Rows<const double>, Rows<double>);
template void accumulate(const Context&, Rows<const float>, Rows<float>);
template void accumulate(const Context&, Rows<const double>, Rows<double>);
template void multiply(const Context&, Rows<const float>, Rows<const float>, Rows<float>);
template void multiply(const Context&, Rows<const double>, Rows<const double>, Rows<double>);
template void scale(const Context&, double, Rows<const float>, Rows<float>);
template void scale(const Context&, double, Rows<const double>, Rows<double>);
template void copy_rows(const Context&, Rows<const float>, Rows<float>);
template void copy_rows(const Context&, Rows<const double>, Rows<double>);
template void fill(const Context&, float, Rows<float>);
template void fill(const Context&, double, Rows<double>);
template void add_bias(const Context&, Rows<const float>, Vec<const float>, Rows<float>);
template void add_bias(const Context&, Rows<const double>, Vec<const double>, Rows<double>);

namespace {

HWY_EXPORT(RoundSpan);
HWY_EXPORT(WidenSpan);
HWY_EXPORT(AddWidenedSpan);

// Calls `span` for all of x and y.
template <class From, class To>
void for_all(const Context& ctx, const char* what, Rows<const From> x, Rows<To> y,
             void (*span)(const From*, index, To*)) {
  check_rows(what, "y", y, x.rows, x.columns);
  const ProfileScope scope(ctx, pass_over<float>(what, x.rows, x.columns, 2));
  for_spans(ctx, x.rows, x.columns, layout_of(x, y), kCost,
            [=](index r, index c, index n) { span(x[r] + c, n, y[r] + c); });
}

}  // namespace

void round_rows(const Context& ctx, Rows<const float> x, Rows<BFloat16> y) {
  for_all(ctx, "round", x, y, FOVEA_DISPATCH(RoundSpan));
}

void widen_rows(const Context& ctx, Rows<const BFloat16> x, Rows<float> y) {
  for_all(ctx, "widen", x, y, FOVEA_DISPATCH(WidenSpan));
}

void accumulate(const Context& ctx, Rows<const BFloat16> x, Rows<float> y) {
  for_all(ctx, "accumulate", x, y, FOVEA_DISPATCH(AddWidenedSpan));
}

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

constexpr double kActivationCost = 12;  // operations for one element: an exponential and a division

}  // namespace

template <class T>
void glu_forward(const Context& ctx, InRows<T> x, Rows<T> y) {
  const index N = x.rows, C = y.columns;
  check_rows("glu", "x", x, y.rows, 2 * C);
  const auto row = FOVEA_DISPATCH(GluKernel)().of<T>();
  const ProfileScope scope(ctx, pass_over<T>("glu", N, C, 3));
  ctx.for_ranges(N, kActivationCost * static_cast<double>(C), [&](index begin, index end) {
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
  ctx.for_ranges(N, kActivationCost * static_cast<double>(C), [&](index begin, index end) {
    for (index n = begin; n < end; ++n) row(x[n], dy[n], C, dx[n]);
  });
}

template void glu_forward(const Context&, Rows<const float>, Rows<float>);
template void glu_forward(const Context&, Rows<const double>, Rows<double>);
template void glu_backward(const Context&, Rows<const float>, Rows<const float>, Rows<float>);
template void glu_backward(const Context&, Rows<const double>, Rows<const double>, Rows<double>);

}  // namespace fovea
#endif  // HWY_ONCE
