// SPDX-License-Identifier: Apache-2.0
#include "fovea/grad/ops.h"
#include "fovea/grad/ops/common.h"
#include "fovea/kernel/gemm.h"

namespace fovea {

namespace {

// c = f(a B + bias) with B the weight in one of its forms: a parameter keeps them between steps.
template <class T>
void multiply_by(const Context& context, Rows<const T> a, Variable weight, Form form, Rows<T> c,
                 const MatmulOptions<T>& options) {
  if (Parameter* parameter = weight.parameter(); parameter != nullptr) {
    const auto& packed =
        parameter->packed.get<T>(context, weight.value<T>(), form, parameter->version);
    matmul(context, a, packed, c, options);
    return;
  }
  PackedMatrix<T> packed;
  packed.pack(context, weight.value<T>(), form);
  matmul(context, a, packed, c, options);
}

// What f's derivative is taken at. ReLU's can be told from its result, so only others keep it.
template <class T>
Rows<T> before_activation(Tape& tape, Activation f, Variable y, bool records) {
  if (f == Activation::kNone || !records) return {};
  if (f == Activation::kRelu) return y.value<T>();
  return {tape.saved<T>(y.rows() * y.columns()), y.rows(), y.columns()};
}

struct LinearCall {
  Variable x, weight, bias, y;
  Activation f;
};

template <class T>
void backward(Tape& tape, const LinearCall& call, Rows<const T> before) {
  const Context& context = tape.context();
  const Rows<T> dy = tape.take_gradient<T>(call.y);
  if (call.f != Activation::kNone) activation_backward(context, call.f, before, dy, dy);
  if (const auto dx = tape.gradient_for<T>(call.x)) {
    multiply_by<T>(context, dy, call.weight, Form::kPlain, dx.rows, {.store = dx.store});
  }
  if (const auto dw = tape.gradient_for<T>(call.weight)) {
    matmul_at_b(context, dy, call.x.value<T>(), dw.rows, dw.store);
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
    const Rows<T> before = before_activation<T>(tape, f, y, records);
    MatmulOptions<T> options{.bias = bias.vec<T>(), .activation = f};
    if (f != Activation::kRelu) options.before_activation = before;
    multiply_by<T>(tape.context(), x.value<T>(), weight, Form::kTransposed, y.value<T>(), options);
    tape.record(y, {x, weight, bias}, [call = LinearCall{x, weight, bias, y, f}, before](Tape& t) {
      backward<T>(t, call, before);
    });
  });
  return y;
}

}  // namespace fovea
