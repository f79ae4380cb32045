// SPDX-License-Identifier: Apache-2.0
#include "fovea/grad/ops.h"
#include "fovea/grad/ops/common.h"
#include "fovea/kernel/gemm.h"

namespace fovea {

namespace {

// Memory for f', which is computed together with f, as they share most of their work. ReLU needs
// none: its derivative follows from its result.
template <class T>
Rows<T> room_for_slope(Tape& tape, Activation f, Variable y, bool records) {
  if (f == Activation::kNone || f == Activation::kRelu || !records) return {};
  return {tape.saved<T>(y.rows() * y.columns()), y.rows(), y.columns()};
}

struct LinearCall {
  Variable x, weight, bias, y;
  Activation f;
};

template <class T>
void backward(Tape& tape, const LinearCall& call, Rows<const T> slope) {
  const Context& context = tape.context();
  const Rows<T> dy = tape.take_gradient<T>(call.y);
  if (call.f == Activation::kRelu) {
    activation_backward(context, call.f, call.y.value<T>(), dy, dy);
  } else if (call.f != Activation::kNone) {
    multiply(context, dy, slope, dy);
  }
  const auto dx = tape.gradient_for<T>(call.x);
  const auto dw = tape.gradient_for<T>(call.weight);
  // x may be the weight itself: then the second product must add to the result of the first.
  if (dx && dw && dx.rows.data != dw.rows.data) {
    const WeightPanels<T> weight(tape, call.weight, Form::kPlain, dy.rows);
    run_together<T>(context, {context, dy, weight.panels, dx.rows, {.store = dx.store}},
                    {context, dy, call.x.value<T>(), dw.rows, dw.store});
  } else {
    if (dx) {
      const WeightPanels<T> weight(tape, call.weight, Form::kPlain, dy.rows);
      matmul(context, dy, weight.panels, dx.rows, {.store = dx.store});
    }
    if (dw) matmul_at_b(context, dy, call.x.value<T>(), dw.rows, dw.store);
  }
  if (const auto db = tape.gradient_for<T>(call.bias)) {
    column_sums(context, dy, db.vec(), db.store);
  }
}

}  // namespace

Variable linear(Tape& tape, Variable x, Variable weight, Variable bias, Activation f) {
  const index out = weight.rows();
  check_operand("linear", "weight", weight, out, x.columns(), x.dtype());
  check_vector("linear", "bias", bias, out, x.dtype());
  const Variable y = tape.result(x.rows(), out, x.dtype());
  with_type(x.dtype(), [&]<class T>(std::type_identity<T>) {
    const bool records = tape.records({x, weight, bias});
    const Rows<T> slope = room_for_slope<T>(tape, f, y, records);
    const WeightPanels<T> panels(tape, weight, Form::kTransposed, x.rows());
    matmul(tape.context(), x.value<T>(), panels.panels, y.value<T>(),
           {.bias = bias.vec<T>(), .activation = f, .slope = slope});
    tape.record(y, {x, weight, bias}, [call = LinearCall{x, weight, bias, y, f}, slope](Tape& t) {
      backward<T>(t, call, slope);
    });
  });
  return y;
}

}  // namespace fovea
