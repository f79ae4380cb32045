// SPDX-License-Identifier: Apache-2.0
#include "fovea/kernel/elementwise.h"

#include <algorithm>
#include <cstring>
#include <type_traits>

#include "fovea/kernel/spans.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "fovea/kernel/elementwise.cc"
#include "hwy/foreach_target.h"  // compiles this file once for each instruction set
//
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

}  // namespace fovea
#endif  // HWY_ONCE
