// SPDX-License-Identifier: Apache-2.0
#include "fovea/nn/depthwise.h"

#include <algorithm>

#include "fovea/base/profile.h"
#include "fovea/grad/ops/common.h"
#include "fovea/kernel/shapes.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "fovea/nn/depthwise.cc"
#include "hwy/foreach_target.h"  // compiles this file once for each instruction set
//
#include "fovea/simd/simd-inl.h"

// A row of the result reads `width` rows of x and as many of taps, all of which but one row of x
// are in L1: forward and backward run at the speed of memory.
HWY_BEFORE_NAMESPACE();
namespace fovea {
namespace HWY_NAMESPACE {
namespace {

// y = start + sum over i of x_i * taps_i; no start: 0.
template <class T>
void SumOfTaps(Rows<const T> x, Rows<const T> taps, const T* start, T* y) {
  ForEachLane<T>(x.columns, [=](auto lanes, index c) {
    auto sum = lanes.Set(T{0});
    if (start != nullptr) sum = lanes.Load(start + c);
    for (index i = 0; i < x.rows; ++i) {
      sum = hn::MulAdd(lanes.Load(x[i] + c), lanes.Load(taps[i] + c), sum);
    }
    lanes.Store(sum, y + c);
  });
}

// sums += x * y.
template <class T>
void AddProducts(const T* x, const T* y, index n, T* sums) {
  ForEachLane<T>(n, [=](auto lanes, index c) {
    lanes.Store(hn::MulAdd(lanes.Load(x + c), lanes.Load(y + c), lanes.Load(sums + c)), sums + c);
  });
}

auto SumOfTapsKernel() { return PerPrecision{SumOfTaps<float>, SumOfTaps<double>}; }
auto AddProductsKernel() { return PerPrecision{AddProducts<float>, AddProducts<double>}; }

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace fovea
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace fovea {
namespace {

HWY_EXPORT(SumOfTapsKernel);
HWY_EXPORT(AddProductsKernel);

using Offsets = Vec<const std::int32_t>;

// Calls f(row, first row of its sequence, end of its sequence) for the rows [begin, end).
template <class F>
void for_rows(const Offsets& offsets, index begin, index end, F&& f) {
  const auto* next = std::upper_bound(offsets.begin(), offsets.end(), begin);
  for (index row = begin; row < end; ++row) {
    while (row >= *next) ++next;
    f(row, index{next[-1]}, index{*next});
  }
}

// Taps from that of the newest row to that of the oldest, `count` of them.
template <class T>
Rows<const T> newest_first(Rows<const T> weight, index count) {
  return {weight[weight.rows - 1], count, weight.columns, -weight.stride};
}

// The sums of the last y.rows rows of x, each with what comes before it in its sequence.
template <class T>
void forward(const Context& ctx, const Offsets& offsets, InRows<T> x, InRows<T> weight,
             const T* bias, Rows<T> y) {
  const auto sum = FOVEA_DISPATCH(SumOfTapsKernel)().template of<T>();
  const index W = weight.rows, C = x.columns, before = x.rows - y.rows;
  const ProfileScope scope(ctx, pass_over<T>("depthwise", y.rows, C, 2));
  ctx.for_ranges(y.rows, static_cast<double>(W * C), [&](index begin, index end) {
    for_rows(offsets, before + begin, before + end, [&](index t, index first, index) {
      const index seen = std::min(W, t - first + 1);
      sum({x[t], seen, C, -x.stride}, newest_first(weight, seen), bias, y[t - before]);
    });
  });
}

// dx_t = the taps times dy_t and what comes after it.
template <class T>
void input_gradient(const Context& ctx, const Offsets& offsets, InRows<T> dy, InRows<T> weight,
                    Rows<T> dx) {
  const auto sum = FOVEA_DISPATCH(SumOfTapsKernel)().template of<T>();
  const index W = weight.rows, C = dy.columns;
  const ProfileScope scope(ctx, pass_over<T>("depthwise dx", dy.rows, C, 2));
  ctx.for_ranges(dy.rows, static_cast<double>(W * C), [&](index begin, index end) {
    for_rows(offsets, begin, end, [&](index t, index, index last) {
      const index seen = std::min(W, last - t);
      sum({dy[t], seen, C, dy.stride}, newest_first(weight, seen), nullptr, dx[t]);
    });
  });
}

// dw_j += the sum over t of dy_t * x_(t - (width - 1) + j).
template <class T>
void add_weight_gradient(const Context& ctx, const Offsets& offsets, InRows<T> x, InRows<T> dy,
                         Rows<T> dw) {
  const auto add = FOVEA_DISPATCH(AddProductsKernel)().template of<T>();
  const index W = dw.rows, C = dw.columns;
  const ProfileScope scope(ctx, pass_over<T>("depthwise dW", x.rows, C, 2));
  add_chunk_sums<T>(ctx, x.rows, static_cast<double>(W * C), Vec<T>(dw.data, W * C),
                    [&](index begin, index end, T* sums) {
                      for_rows(offsets, begin, end, [&](index t, index first, index) {
                        const index seen = std::min(W, t - first + 1);
                        for (index i = 0; i < seen; ++i)
                          add(dy[t], x[t - i], C, sums + (W - 1 - i) * C);
                      });
                    });
}

// The rows that the state has seen, and x; the last `reach` of both become the state.
template <class T>
Rows<const T> continue_state(ConvolutionState& state, Rows<const T> x, index reach,
                             Scratch& scratch) {
  const index C = x.columns, before = state.rows.defined() ? state.rows.shape()[0] : 0;
  const Rows<T> all(scratch.allocate<T>((before + x.rows) * C), before + x.rows, C);
  if (before > 0) {
    check(state.rows.shape()[1] == C && state.rows.dtype() == kDTypeOf<T>,
          Hint{"a state belongs to one layer; clear it before another sequence"},
          "depthwise convolution: the state must have {} columns of {}; it is {}", C,
          to_string(kDTypeOf<T>), state.rows.describe());
    std::copy_n(state.rows.data<T>(), before * C, all.data);
  }
  for (index t = 0; t < x.rows; ++t) std::copy_n(x[t], C, all[before + t]);
  const index kept = std::min(reach, all.rows);
  if (kept == 0) return all;
  if (kept != before) state.rows = Tensor::empty({kept, C}, kDTypeOf<T>);
  std::copy_n(all[all.rows - kept], kept * C, state.rows.data<T>());
  return all;
}

struct DepthwiseCall {
  Variable x, weight, bias, y;
};

template <class T>
void run(Tape& tape, const DepthwiseCall& o, const Offsets& offsets) {
  forward<T>(tape.context(), offsets, o.x.value<T>(), o.weight.value<T>(), o.bias.vec<T>().data,
             o.y.value<T>());
  tape.record(o.y, {o.x, o.weight, o.bias}, [o, offsets](Tape& t) {
    const Context& ctx = t.context();
    const Rows<const T> dy = t.gradient_of<T>(o.y);
    write_or_add(ctx, t.gradient_for<T>(o.x),
                 [&](Rows<T> dx) { input_gradient<T>(ctx, offsets, dy, o.weight.value<T>(), dx); });
    if (const auto dw = gradient_to_add_to<T>(t, o.weight)) {
      add_weight_gradient<T>(ctx, offsets, o.x.value<T>(), dy, dw.rows);
    }
    if (const auto db = t.gradient_for<T>(o.bias)) column_sums(ctx, dy, db.vec(), db.store);
  });
}

template <class T>
void run_on(Tape& tape, const DepthwiseCall& o, ConvolutionState& state) {
  Scratch scratch;
  const Rows<const T> all = continue_state<T>(state, o.x.value<T>(), o.weight.rows() - 1, scratch);
  const std::int32_t offsets[] = {0, static_cast<std::int32_t>(all.rows)};
  forward<T>(tape.context(), {offsets, 2}, all, o.weight.value<T>(), o.bias.vec<T>().data,
             o.y.value<T>());
}

}  // namespace

Variable depthwise_convolution(Tape& tape, Variable x, Variable weight, Variable bias,
                               const PackedRows& rows, ConvolutionState* state) {
  check(weight.defined() && weight.rows() > 0, "depthwise convolution: weight is missing");
  check_operand("depthwise convolution", "weight", weight, weight.rows(), x.columns(), x.dtype());
  check_vector("depthwise convolution", "bias", bias, x.columns(), x.dtype());
  check(state == nullptr || (tape.mode() == TapeMode::kInference && rows.count() == 1),
        "depthwise convolution: a state is for one sequence in inference mode");
  const Variable y = tape.result(x.rows(), x.columns(), x.dtype());
  const DepthwiseCall call{x, weight, bias, y};
  with_type(x.dtype(), [&]<class T>(std::type_identity<T>) {
    if (state != nullptr) return run_on<T>(tape, call, *state);
    run<T>(tape, call, offsets_of(tape, "depthwise convolution", rows, x.rows()));
  });
  return y;
}

DepthwiseConvolution::DepthwiseConvolution(const DepthwiseConvolutionOptions& o,
                                           const ParameterScope& scope)
    : options_(o) {
  check(o.columns > 0 && o.width > 0,
        "depthwise convolution: sizes must be positive; columns is {}, width is {}", o.columns,
        o.width);
  weight_ = &scope.add("weight", {o.width, o.columns}, linear_uniform_init(o.width));
  if (o.bias == Biases::kLearned) {
    bias_ = &scope.add("bias", {o.columns}, Init::zeros(), Decay::kNo);
  }
}

Variable DepthwiseConvolution::forward(Tape& tape, Variable x, const EncoderCall& call) const {
  return depthwise_convolution(tape, x, tape.parameter(*weight_), parameter_or_none(tape, bias_),
                               call.rows);
}

Variable DepthwiseConvolution::forward(Tape& tape, Variable x, ConvolutionState& state) const {
  return depthwise_convolution(tape, x, tape.parameter(*weight_), parameter_or_none(tape, bias_),
                               {}, &state);
}

std::unique_ptr<LayerSession> DepthwiseConvolution::begin(index) const {
  return std::make_unique<StateSession<DepthwiseConvolution, ConvolutionState>>(*this);
}

}  // namespace fovea
#endif  // HWY_ONCE
