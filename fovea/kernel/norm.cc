// SPDX-License-Identifier: Apache-2.0
#include "fovea/kernel/norm.h"

#include <cmath>
#include <type_traits>

#include "fovea/base/memory.h"
#include "fovea/kernel/shapes.h"

#ifndef FOVEA_KERNEL_NORM_ROWS_
#define FOVEA_KERNEL_NORM_ROWS_
namespace fovea {
namespace {

// A row of either norm: xhat = (x - mu) * rate, and for backward
//   dx = (h - mean) * rate - xhat * pull,  h = gain dy.
template <class T>
struct NormRow {
  const T* x;
  const T* gain;  // null: 1
  const T* bias;  // null: 0
  index C;
  T mu;
  T rate;
};

template <class T>
struct NormGradient {
  const T* dy;
  T* dx;
  T* dgain;  // null: not wanted
  T* dbias;
  Store dx_store;
};

}  // namespace
}  // namespace fovea
#endif

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "fovea/kernel/norm.cc"
#include "hwy/foreach_target.h"  // compiles this file once for each instruction set
//
#include "fovea/simd/simd-inl.h"

// Memory bandwidth limits the speed: forward reads x (twice more from L1) and writes y; backward
// reads x and dy (twice more from L1) and writes dx; the gains' gradients of a chunk of rows stay
// in L1. Mean and variance take two passes: the one-pass formula with x and x^2 loses the variance
// of a row whose mean is large.
HWY_BEFORE_NAMESPACE();
namespace fovea {
namespace HWY_NAMESPACE {
namespace {

// Sums distances from the first value: no digits are lost to a large mean, and the mean of a
// constant row is exactly its value.
template <class T>
T Mean(const T* x, index C) {
  const T origin = x[0];
  const T sum = SumOf<T>(
      C, [=](auto lanes, index c) { return hn::Sub(lanes.Load(x + c), lanes.Set(origin)); });
  return origin + sum / static_cast<T>(C);
}

template <class T, class Lanes>
HWY_INLINE Vector<T> Xhat(Lanes lanes, const NormRow<T>& row, index c) {
  return hn::Mul(hn::Sub(lanes.Load(row.x + c), lanes.Set(row.mu)), lanes.Set(row.rate));
}

// h = gain dy
template <class T, class Lanes>
HWY_INLINE Vector<T> Pulled(Lanes lanes, const NormRow<T>& row, const T* dy, index c) {
  const auto v = lanes.Load(dy + c);
  return row.gain == nullptr ? v : hn::Mul(v, lanes.Load(row.gain + c));
}

template <class T>
void Forward(const NormRow<T>& given, T* y) {
  const NormRow<T> row = given;
  ForEachLane<T>(row.C, [=](auto lanes, index c) {
    auto v = Xhat<T>(lanes, row, c);
    if (row.gain != nullptr) v = hn::Mul(v, lanes.Load(row.gain + c));
    if (row.bias != nullptr) v = hn::Add(v, lanes.Load(row.bias + c));
    lanes.Store(v, y + c);
  });
}

template <class T>
void Sums(const NormRow<T>& given, const T* dy, T& sum_h, T& sum_hx) {
  const NormRow<T> row = given;
  sum_h = SumOf<T>(row.C, [=](auto lanes, index c) { return Pulled<T>(lanes, row, dy, c); });
  sum_hx = SumOf<T>(row.C, [=](auto lanes, index c) {
    return hn::Mul(Pulled<T>(lanes, row, dy, c), Xhat<T>(lanes, row, c));
  });
}

template <class T>
void Backward(const NormRow<T>& given, const NormGradient<T>& given_gradient, T mean, T pull) {
  const NormRow<T> row = given;
  const NormGradient<T> g = given_gradient;
  ForEachLane<T>(row.C, [=](auto lanes, index c) {
    const auto xhat = Xhat<T>(lanes, row, c);
    const auto dy = lanes.Load(g.dy + c);
    const auto h = Pulled<T>(lanes, row, g.dy, c);
    auto dx = hn::Mul(hn::Sub(h, lanes.Set(mean)), lanes.Set(row.rate));
    dx = hn::NegMulAdd(xhat, lanes.Set(pull), dx);
    if (g.dx_store == Store::kAdd) dx = hn::Add(dx, lanes.Load(g.dx + c));
    lanes.Store(dx, g.dx + c);
    if (g.dgain != nullptr) lanes.Store(hn::MulAdd(dy, xhat, lanes.Load(g.dgain + c)), g.dgain + c);
    if (g.dbias != nullptr) lanes.Store(hn::Add(dy, lanes.Load(g.dbias + c)), g.dbias + c);
  });
}

auto MeanKernel() { return PerPrecision{Mean<float>, Mean<double>}; }
auto SumOfSquaresKernel() { return PerPrecision{SumOfSquares<float>, SumOfSquares<double>}; }
auto ForwardKernel() { return PerPrecision{Forward<float>, Forward<double>}; }
auto SumsKernel() { return PerPrecision{Sums<float>, Sums<double>}; }
auto BackwardKernel() { return PerPrecision{Backward<float>, Backward<double>}; }

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace fovea
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include "fovea/base/profile.h"
namespace fovea {
namespace {

HWY_EXPORT(MeanKernel);
HWY_EXPORT(SumOfSquaresKernel);
HWY_EXPORT(ForwardKernel);
HWY_EXPORT(SumsKernel);
HWY_EXPORT(BackwardKernel);

// Operations for one element.
constexpr double kForwardCost = 5, kBackwardCost = 10;

// 1 / divisor, from the deviation. If the divisor is 0 (a constant row, epsilon 0), xhat is 0
// anyway; the factor must not be infinite.
template <class T>
T rate_of(const LayerNormOptions& options, T deviation) {
  const bool standard = options.variant == LayerNormVariant::kStandard;
  const T divisor = standard ? deviation : deviation + static_cast<T>(options.epsilon);
  return divisor == T{0} ? T{0} : T{1} / divisor;
}

// The factor of xhat sum(h xhat) in dx. The root has no derivative at 0, but xhat is 0 there.
template <class T>
T pull_of(const LayerNormOptions& options, index C, T deviation) {
  const index freedom = options.variant == LayerNormVariant::kStandard ? C : C - 1;
  return deviation == T{0} ? T{0} : T{1} / (static_cast<T>(freedom) * deviation);
}

// The backward of both norms over all rows: `row_of(n)` gives row n, `factors(n, sum_h, sum_hx)`
// its mean and pull. dgain and dbias share one pass of partial sums.
template <class T, class RowOf, class Factors>
void backward_rows(const Context& ctx, const LayerNormBackward<T>& a, RowOf&& row_of,
                   Factors&& factors) {
  const auto add_sums = FOVEA_DISPATCH(SumsKernel)().of<T>();
  const auto backward = FOVEA_DISPATCH(BackwardKernel)().of<T>();
  const index N = a.x.rows, C = a.x.columns;
  const index gains = a.dgain.size, biases = a.dbias.size;
  Scratch scratch;
  const Vec<T> sums{scratch.allocate<T>(gains + biases + 1), gains + biases};
  ctx.run_here([&] { std::fill(sums.begin(), sums.end(), T{0}); });
  add_chunk_sums(ctx, N, kBackwardCost * static_cast<double>(C), sums,
                 [&](index begin, index end, T* partial) {
                   for (index n = begin; n < end; ++n) {
                     const NormRow<T> row = row_of(n);
                     T sum_h, sum_hx;
                     add_sums(row, a.dy[n], sum_h, sum_hx);
                     const auto [mean, pull] = factors(n, sum_h, sum_hx);
                     T* const dgain = gains > 0 ? partial : nullptr;
                     T* const dbias = biases > 0 ? partial + gains : nullptr;
                     backward(row, {a.dy[n], a.dx[n], dgain, dbias, a.dx_store}, mean, pull);
                   }
                 });
  ctx.run_here([&] {
    for (index c = 0; c < gains; ++c) a.dgain[c] += sums[c];
    for (index c = 0; c < biases; ++c) a.dbias[c] += sums[gains + c];
  });
}

template <class T>
void check_layer_norm(const char* operation, const LayerNormOptions& options, const Rows<T>& x) {
  check(options.variant == LayerNormVariant::kStandard || x.columns > 1,
        "{}: the unbiased variant needs at least 2 columns; x is [N={}, C={}]", operation, x.rows,
        x.columns);
}

}  // namespace

template <class T>
void layer_norm_forward(const Context& ctx, InRows<T> x,
                        const NormParameters<std::type_identity_t<T>>& parameters,
                        const LayerNormOptions& options, Rows<T> y, Rows<T> saved) {
  const index N = x.rows, C = x.columns;
  check_layer_norm("layer_norm", options, x);
  check_optional("layer_norm", "gain", parameters.gain, "C", C);
  check_optional("layer_norm", "bias", parameters.bias, "C", C);
  check_rows("layer_norm", "y", y, N, C);
  check_rows("layer_norm", "saved", saved, N, 2);
  if (C == 0) return;
  const ProfileScope scope(ctx, pass_over<T>("layer norm", N, C, 2));
  const auto mean = FOVEA_DISPATCH(MeanKernel)().of<T>();
  const auto squares_of = FOVEA_DISPATCH(SumOfSquaresKernel)().of<T>();
  const auto forward = FOVEA_DISPATCH(ForwardKernel)().of<T>();
  const bool standard = options.variant == LayerNormVariant::kStandard;
  ctx.for_ranges(N, kForwardCost * static_cast<double>(C), [&](index begin, index end) {
    for (index n = begin; n < end; ++n) {
      const T mu = mean(x[n], C);
      const T squares = squares_of(x[n], C, mu);
      const T deviation =
          standard ? std::sqrt(squares / static_cast<T>(C) + static_cast<T>(options.epsilon))
                   : std::sqrt(squares / static_cast<T>(C - 1));
      saved[n][0] = mu;
      saved[n][1] = deviation;
      const T rate = rate_of(options, deviation);
      forward({x[n], parameters.gain.data, parameters.bias.data, C, mu, rate}, y[n]);
    }
  });
}

template <class T>
void layer_norm_backward(const Context& ctx, const LayerNormBackward<T>& a) {
  const index N = a.x.rows, C = a.x.columns;
  check_layer_norm("layer_norm_backward", a.options, a.x);
  check_optional("layer_norm_backward", "gain", a.gain, "C", C);
  check_rows("layer_norm_backward", "saved", a.saved, N, 2);
  check_rows("layer_norm_backward", "dy", a.dy, N, C);
  check_rows("layer_norm_backward", "dx", a.dx, N, C);
  check_optional("layer_norm_backward", "dgain", a.dgain, "C", C);
  check_optional("layer_norm_backward", "dbias", a.dbias, "C", C);
  if (C == 0) return;
  const ProfileScope scope(ctx, pass_over<T>("layer norm backward", N, C, 3));
  backward_rows(
      ctx, a,
      [&](index n) {
        const T rate = rate_of(a.options, a.saved[n][1]);
        return NormRow<T>{a.x[n], a.gain.data, nullptr, C, a.saved[n][0], rate};
      },
      [&](index n, T sum_h, T sum_hx) {
        const T pull = sum_hx * pull_of(a.options, C, a.saved[n][1]);
        return std::pair(sum_h / static_cast<T>(C), pull);
      });
}

template <class T>
void rms_norm_forward(const Context& ctx, InRows<T> x, InVec<T> gain, double epsilon, Rows<T> y,
                      Vec<T> saved) {
  const index N = x.rows, C = x.columns;
  check_optional("rms_norm", "gain", gain, "C", C);
  check_rows("rms_norm", "y", y, N, C);
  check_vec("rms_norm", "saved", saved, "N", N);
  if (C == 0) return;
  const ProfileScope scope(ctx, pass_over<T>("RMS norm", N, C, 2));
  const auto squares_of = FOVEA_DISPATCH(SumOfSquaresKernel)().of<T>();
  const auto forward = FOVEA_DISPATCH(ForwardKernel)().of<T>();
  ctx.for_ranges(N, kForwardCost * static_cast<double>(C), [&](index begin, index end) {
    for (index n = begin; n < end; ++n) {
      const T squares = squares_of(x[n], C, T{0});
      saved[n] = std::sqrt(squares / static_cast<T>(C) + static_cast<T>(epsilon));
      forward({x[n], gain.data, nullptr, C, T{0}, rate_of({}, saved[n])}, y[n]);
    }
  });
}

template <class T>
void rms_norm_backward(const Context& ctx, const RmsNormBackward<T>& a) {
  const index N = a.x.rows, C = a.x.columns;
  check_optional("rms_norm_backward", "gain", a.gain, "C", C);
  check_vec("rms_norm_backward", "saved", a.saved, "N", N);
  check_rows("rms_norm_backward", "dy", a.dy, N, C);
  check_rows("rms_norm_backward", "dx", a.dx, N, C);
  check_optional("rms_norm_backward", "dgain", a.dgain, "C", C);
  if (C == 0) return;
  const ProfileScope scope(ctx, pass_over<T>("RMS norm backward", N, C, 3));
  const LayerNormBackward<T> common{.x = a.x,
                                    .gain = a.gain,
                                    .options = {},
                                    .saved = {},
                                    .dy = a.dy,
                                    .dx = a.dx,
                                    .dgain = a.dgain,
                                    .dbias = {},
                                    .dx_store = a.dx_store};
  backward_rows(
      ctx, common,
      [&](index n) {
        return NormRow<T>{a.x[n], a.gain.data, nullptr, C, T{0}, rate_of({}, a.saved[n])};
      },
      [&](index n, T, T sum_hx) { return std::pair(T{0}, sum_hx * pull_of({}, C, a.saved[n])); });
}

template void layer_norm_forward(const Context&, Rows<const float>, const NormParameters<float>&,
                                 const LayerNormOptions&, Rows<float>, Rows<float>);
template void layer_norm_forward(const Context&, Rows<const double>, const NormParameters<double>&,
                                 const LayerNormOptions&, Rows<double>, Rows<double>);
template void layer_norm_backward(const Context&, const LayerNormBackward<float>&);
template void layer_norm_backward(const Context&, const LayerNormBackward<double>&);
template void rms_norm_forward(const Context&, Rows<const float>, Vec<const float>, double,
                               Rows<float>, Vec<float>);
template void rms_norm_forward(const Context&, Rows<const double>, Vec<const double>, double,
                               Rows<double>, Vec<double>);
template void rms_norm_backward(const Context&, const RmsNormBackward<float>&);
template void rms_norm_backward(const Context&, const RmsNormBackward<double>&);

}  // namespace fovea
#endif  // HWY_ONCE
