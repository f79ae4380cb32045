// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <initializer_list>
#include <span>

#include "fovea/base/memory.h"
#include "fovea/grad/ops.h"
#include "fovea/grad/ops/common.h"
#include "fovea/grad/ops/weight_panels.h"
#include "fovea/kernel/gemm.h"

namespace fovea {

namespace {

/// A LowRank of the weight on this tape.
struct ChangeCall {
  Variable a, b;
  index first;
  double scale;
};

struct LinearCall {
  Variable x, weight, bias, y;
  Activation f;
  std::span<const ChangeCall> changes;
};

// f with the type of the values of x: T, or bfloat16 if they were made for one product.
template <class T, class F>
auto with_stored_type(Variable x, F&& f) {
  using Value = std::remove_const_t<T>;
  if constexpr (std::is_same_v<Value, float>) {
    if (x.dtype() == DType::kBFloat16) return f(std::type_identity<BFloat16>());
  }
  return f(std::type_identity<Value>());
}

template <class T>
ProductRows<T> rows_of(Variable x) {
  return with_stored_type<T>(
      x, [&]<class S>(std::type_identity<S>) { return ProductRows<T>(x.value<S>()); });
}
template <class T>
ProductRows<const T> gradient_of(const Tape& tape, Variable y) {
  return with_stored_type<T>(y, [&]<class S>(std::type_identity<S>) {
    return ProductRows<const T>(tape.gradient_of<S>(y));
  });
}

// Where a product writes the gradient of x, and how.
template <class T>
struct ProductGradient {
  ProductRows<T> rows;
  MatmulOptions<T> options;
  bool wanted = false;

  explicit operator bool() const { return wanted; }
};
template <class T>
ProductGradient<T> gradient_for(Tape& tape, Variable x) {
  return with_stored_type<T>(x, [&]<class S>(std::type_identity<S>) -> ProductGradient<T> {
    const auto out = tape.gradient_for_product<S>(x);
    if (!out) return {};
    return {out.rows, {.times = tape.slope_of<T>(x), .store = out.store}, true};
  });
}

// The gradient of x W^T + b: that of y, which its reader has multiplied by f' if y has a slope.
template <class T>
ProductRows<const T> gradient_of_sums(Tape& tape, const LinearCall& call, Rows<const T> slope) {
  const bool is_pulled = tape.slope_of<T>(call.y).data != nullptr;
  if (is_pulled || call.f == Activation::kNone) return gradient_of<T>(tape, call.y);
  const Rows<T> dy = tape.take_gradient<T>(call.y);
  pull_activation<T>(tape.context(), call.f, call.y.value<T>(), slope, dy);
  return dy;
}

// Whether both are one memory: x may be the weight itself.
template <class T>
bool share_memory(const ProductGradient<T>& dx, const GradientOut<T>& dw) {
  return !dx.rows.is_rounded() && dx.rows.values().data == dw.rows.data;
}

// dB = scale dy^T (x A^T) and dA = scale (dy B)^T x, of the columns of dy that the change makes.
template <class T>
void pull_change(Tape& tape, const ChangeCall& change, ProductRows<const T> dy,
                 ProductRows<const T> x) {
  const Context& context = tape.context();
  const index N = x.rows(), r = change.a.rows();
  const ProductRows<const T> own = dy.columns_slice(change.first, change.first + change.b.rows());
  Scratch scratch;
  const auto product = [&](ProductRows<const T> left, Variable weight, Form form) {
    const Rows<T> rows(scratch.allocate<T>(N * r), N, r);
    const WeightPanels<T> panels(tape, weight, form, N);
    matmul(context, left, panels.panels, ProductRows<T>(rows));
    scale<T>(context, change.scale, rows, rows);
    return rows;
  };
  if (const auto db = tape.gradient_for<T>(change.b)) {
    const Rows<T> h = product(x, change.a, Form::kTransposed);
    matmul_at_b(context, own, ProductRows<const T>(h), db.rows, db.store);
  }
  if (const auto da = tape.gradient_for<T>(change.a)) {
    const Rows<T> t = product(own, change.b, Form::kPlain);
    matmul_at_b(context, ProductRows<const T>(t), x, da.rows, da.store);
  }
}

// The changes of a weight, on the tape.
std::span<const ChangeCall> changes_of(Tape& tape, Variable weight) {
  Parameter* const parameter = weight.parameter();
  if (parameter == nullptr || tape.mode() != TapeMode::kTrain) return {};
  const auto n = std::ssize(parameter->changes);
  auto* const calls = tape.saved<ChangeCall>(n);
  for (index i = 0; i < n; ++i) {
    const LowRank& change = parameter->changes[static_cast<std::size_t>(i)];
    calls[i] = {tape.parameter(*change.a), tape.parameter(*change.b), change.first, change.scale};
  }
  return {calls, static_cast<std::size_t>(n)};
}

std::span<const Variable> inputs_of(Tape& tape, std::initializer_list<Variable> usual,
                                    std::span<const ChangeCall> changes) {
  const std::size_t size = usual.size() + 2 * changes.size();
  auto* const inputs = tape.saved<Variable>(static_cast<index>(size));
  Variable* next = std::copy(usual.begin(), usual.end(), inputs);
  for (const ChangeCall& change : changes) {
    *next++ = change.a;
    *next++ = change.b;
  }
  return {inputs, size};
}

template <class T>
void backward(Tape& tape, const LinearCall& call, Rows<const T> slope) {
  const Context& context = tape.context();
  const ProductRows<const T> dy = gradient_of_sums(tape, call, slope), x = rows_of<const T>(call.x);
  const auto dx = gradient_for<T>(tape, call.x);
  const auto dw = tape.gradient_for<T>(call.weight);
  // If they share their memory, the second product must add to the result of the first.
  if (dx && dw && !share_memory(dx, dw)) {
    const WeightPanels<T> weight(tape, call.weight, Form::kPlain, dy.rows());
    run_together<T>(context, {context, dy, weight.panels, dx.rows, dx.options},
                    {context, dy, x, dw.rows, dw.store});
  } else {
    if (dx) {
      const WeightPanels<T> weight(tape, call.weight, Form::kPlain, dy.rows());
      matmul(context, dy, weight.panels, dx.rows, dx.options);
    }
    if (dw) matmul_at_b(context, dy, x, dw.rows, dw.store);
  }
  for (const ChangeCall& change : call.changes) pull_change(tape, change, dy, x);
  if (const auto db = tape.gradient_for<T>(call.bias)) {
    column_sums(context, dy, db.vec(), db.store);
  }
}

// Whether a result for one product is kept as that product rounds it. (ReLU needs its values.)
bool keeps_rounded(const Tape& tape, DType dtype, Activation f) {
  return dtype == DType::kFloat32 && f != Activation::kRelu &&
         operands_of<float>(tape.context()) == Operands::kPaired;
}

Variable linear_by_blocks(Tape& tape, Variable x, const BlockMatrix& weight, Variable bias,
                          Activation f) {
  check(tape.mode() == TapeMode::kInference,
        "linear: a weight that lies in blocks has no gradient");
  const Variable y = tape.result(x.rows(), weight.rows(), DType::kFloat32);
  const Rows<float> values = y.value<float>();
  matmul(tape.context(), x.value<float>(), weight, bias.vec<float>(), values);
  if (f != Activation::kNone) activation_forward<float>(tape.context(), f, values, values);
  return y;
}

}  // namespace

Variable linear(Tape& tape, Variable x, Variable weight, Variable bias, Activation f,
                ForReader reader) {
  const index out = weight.rows();
  const DType dtype = weight.dtype();
  check_operand("linear", "weight", weight, out, x.columns(),
                x.dtype() == DType::kBFloat16 ? DType::kFloat32 : x.dtype());
  check_vector("linear", "bias", bias, out, dtype);
  if (const BlockMatrix* const blocks = blocks_of(weight)) {
    return linear_by_blocks(tape, x, *blocks, bias, f);
  }
  const std::span<const ChangeCall> changes = changes_of(tape, weight);
  const std::span<const Variable> inputs = inputs_of(tape, {x, weight, bias}, changes);
  const bool records = tape.records(inputs);
  const bool for_product = records && reader == ForReader::kProduct;
  const bool rounded = for_product && keeps_rounded(tape, dtype, f);
  const Variable y = tape.result(x.rows(), out, rounded ? DType::kBFloat16 : dtype);
  with_type(dtype, [&]<class T>(std::type_identity<T>) {
    const Rows<T> slope = room_for_slope<T>(tape, f, y, records);
    const WeightPanels<T> panels(tape, weight, Form::kTransposed, x.rows());
    const MatmulOptions<T> options{.bias = bias.vec<T>(), .activation = f, .slope = slope};
    matmul(tape.context(), rows_of<const T>(x), panels.panels, rows_of<T>(y), options);
    if (for_product) tape.set_slope<T>(y, slope.data);
    tape.record(y, inputs, [call = LinearCall{x, weight, bias, y, f, changes}, slope](Tape& t) {
      backward<T>(t, call, slope);
    });
  });
  return y;
}

}  // namespace fovea
