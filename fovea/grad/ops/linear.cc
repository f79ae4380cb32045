// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <initializer_list>
#include <span>

#include "fovea/base/memory.h"
#include "fovea/grad/ops.h"
#include "fovea/grad/ops/common.h"
#include "fovea/grad/ops/weight_panels.h"
#include "fovea/kernel/dropout.h"
#include "fovea/kernel/gemm.h"

namespace fovea {

namespace {

/// A LowRank of the weight on this tape.
template <class T>
struct ChangeCall {
  Variable a, b;
  index first;
  double scale;
  DropoutMask mask = {};  // of x
  Rows<T> h = {};         // scale x A^T, kept for a backward
};

template <class T>
struct LinearCall {
  Variable x, weight, bias, y;
  Activation f;
  Rows<T> slope;
  std::span<const ChangeCall<T>> changes;
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
ProductRows<const T> gradient_of_sums(Tape& tape, const LinearCall<T>& call) {
  const bool is_pulled = tape.slope_of<T>(call.y).data != nullptr;
  if (is_pulled || call.f == Activation::kNone) return gradient_of<T>(tape, call.y);
  const Rows<T> dy = tape.take_gradient<T>(call.y);
  const Variable y = call.y;
  pull_activation<T>(tape.context(), call.f, y.value<T>(), call.slope, dy);
  return dy;
}

// Whether both are one memory: x may be the weight itself.
template <class T>
bool share_memory(const ProductGradient<T>& dx, const GradientOut<T>& dw) {
  return !dx.rows.is_rounded() && dx.rows.values().data == dw.rows.data;
}

// y = x W^T or x W, and what the options add, wherever the values of W lie.
template <class T>
void multiply_by(Tape& tape, ProductRows<const T> x, Variable weight, Form form, ProductRows<T> y,
                 const MatmulOptions<T>& options = {}) {
  if constexpr (std::is_same_v<T, float>) {
    if (const BlockMatrix* const blocks = blocks_of(weight)) {
      return matmul(tape.context(), x, *blocks, form, y, options);
    }
  }
  const WeightPanels<T> panels(tape, weight, form, x.rows());
  matmul(tape.context(), x, panels.panels, y, options);
}

// What a change drops of x in training.
DropoutMask dropped_by(const Tape& tape, const LowRank& change, const LinearUse& use) {
  if (change.dropout == 0 || tape.mode() != TapeMode::kTrain) return {};
  check(use.names.has_value(), "linear: adapters drop of rows without names");
  const DropoutKey& key = use.names->key;
  return {change.dropout, {key.seed, key.step, change.mask}, use.names->rows};
}

// The changes of a weight, on the tape.
template <class T>
std::span<ChangeCall<T>> changes_of(Tape& tape, Variable weight, const LinearUse& use) {
  Parameter* const parameter = weight.parameter();
  if (parameter == nullptr) return {};
  const auto n = std::ssize(parameter->changes);
  auto* const calls = tape.saved<ChangeCall<T>>(n);
  for (index i = 0; i < n; ++i) {
    const LowRank& change = parameter->changes[static_cast<std::size_t>(i)];
    calls[i] = {tape.parameter(*change.a), tape.parameter(*change.b), change.first, change.scale,
                dropped_by(tape, change, use)};
  }
  return {calls, static_cast<std::size_t>(n)};
}

template <class T>
std::span<const Variable> inputs_of(Tape& tape, std::initializer_list<Variable> usual,
                                    std::span<const ChangeCall<T>> changes) {
  const std::size_t size = usual.size() + 2 * changes.size();
  auto* const inputs = tape.saved<Variable>(static_cast<index>(size));
  Variable* next = std::copy(usual.begin(), usual.end(), inputs);
  for (const ChangeCall<T>& change : changes) {
    *next++ = change.a;
    *next++ = change.b;
  }
  return {inputs, size};
}

// The rows that a change reads: x, or what is left of them.
template <class T>
ProductRows<const T> read_rows(const Context& context, const DropoutMask& mask,
                               ProductRows<const T> x, Scratch& scratch) {
  if (mask.p == 0) return x;
  const Rows<T> kept(scratch.allocate<T>(x.rows() * x.columns()), x.rows(), x.columns());
  if constexpr (std::is_same_v<T, float>) {
    if (x.is_rounded()) {
      widen_rows(context, x.rounded(), kept);
      dropout_forward<T>(context, mask, kept, kept);
      return Rows<const T>(kept);
    }
  }
  dropout_forward<T>(context, mask, x.values(), kept);
  return Rows<const T>(kept);
}

// y = the sum of the changes, scale (x A^T) B^T each; `keeps` h. Returns how the product with W is
// stored behind it.
template <class T>
Store write_changes(Tape& tape, ProductRows<const T> x, std::span<ChangeCall<T>> changes, Rows<T> y,
                    bool keeps) {
  if (changes.empty()) return Store::kWrite;
  const Context& context = tape.context();
  const bool first_has_all_rows = changes[0].b.rows() == y.columns;
  if (!first_has_all_rows) fill(context, T{0}, y);
  for (ChangeCall<T>& change : changes) {
    Scratch scratch;
    const index r = change.a.rows(), size = x.rows() * r;
    const Rows<T> h(keeps ? tape.saved<T>(size) : scratch.allocate<T>(size), x.rows(), r);
    if (keeps) change.h = h;
    multiply_by<T>(tape, read_rows<T>(context, change.mask, x, scratch), change.a,
                   Form::kTransposed, h);
    scale<T>(context, change.scale, h, h);
    const bool writes = first_has_all_rows && &change == changes.data();
    multiply_by<T>(tape, Rows<const T>(h), change.b, Form::kTransposed,
                   y.columns_slice(change.first, change.first + change.b.rows()),
                   {.store = writes ? Store::kWrite : Store::kAdd});
  }
  return Store::kAdd;
}

// dB = dy^T h, dA = t^T x and dx += t A, where t = scale dy B, of the columns of dy that the change
// makes; x and t A as far as they are not dropped.
template <class T>
void pull_change(Tape& tape, const ChangeCall<T>& change, ProductRows<const T> dy,
                 ProductRows<const T> x, Rows<T> dx) {
  const Context& context = tape.context();
  const ProductRows<const T> own = dy.columns_slice(change.first, change.first + change.b.rows());
  if (const auto db = tape.gradient_for<T>(change.b)) {
    matmul_at_b(context, own, ProductRows<const T>(change.h), db.rows, db.store);
  }
  const auto da = tape.gradient_for<T>(change.a);
  if (!da && dx.data == nullptr) return;
  Scratch scratch;
  const Rows<T> t(scratch.allocate<T>(change.h.rows * change.h.columns), change.h.rows,
                  change.h.columns);
  multiply_by<T>(tape, own, change.b, Form::kPlain, t);
  scale<T>(context, change.scale, t, t);
  if (da) {
    matmul_at_b(context, ProductRows<const T>(t), read_rows<T>(context, change.mask, x, scratch),
                da.rows, da.store);
  }
  if (dx.data == nullptr) return;
  if (change.mask.p == 0) {
    return multiply_by<T>(tape, Rows<const T>(t), change.a, Form::kPlain, dx,
                          {.store = Store::kAdd});
  }
  const Rows<T> of_read(scratch.allocate<T>(dx.rows * dx.columns), dx.rows, dx.columns);
  multiply_by<T>(tape, Rows<const T>(t), change.a, Form::kPlain, of_read);
  dropout_backward<T>(context, change.mask, of_read, of_read);
  accumulate<T>(context, of_read, dx);
}

// Of a weight with changes, whose own values are frozen: dx is a sum of several products, so it is
// rounded, and multiplied by f' of what made x, at the end.
template <class T>
void pull_changed(Tape& tape, const LinearCall<T>& call, ProductRows<const T> dy,
                  ProductRows<const T> x) {
  const Context& context = tape.context();
  const ProductGradient<T> dx = gradient_for<T>(tape, call.x);
  Scratch scratch;
  Rows<T> sums = dx.rows.values();
  if (dx.rows.is_rounded()) {
    sums = {scratch.allocate<T>(x.rows() * x.columns()), x.rows(), x.columns()};
  }
  if (dx) {
    multiply_by<T>(tape, dy, call.weight, Form::kPlain, sums, {.store = dx.options.store});
  }
  for (const ChangeCall<T>& change : call.changes) {
    pull_change<T>(tape, change, dy, x, dx ? sums : Rows<T>());
  }
  if (!dx) return;
  if (dx.options.times.data != nullptr) multiply<T>(context, sums, dx.options.times, sums);
  if constexpr (std::is_same_v<T, float>) {
    if (dx.rows.is_rounded()) round_rows(context, sums, dx.rows.rounded());
  }
}

template <class T>
void pull_plain(Tape& tape, const LinearCall<T>& call, ProductRows<const T> dy,
                ProductRows<const T> x) {
  const Context& context = tape.context();
  const auto dx = gradient_for<T>(tape, call.x);
  const auto dw = tape.gradient_for<T>(call.weight);
  // If they share their memory, the second product must add to the result of the first.
  if (dx && dw && !share_memory(dx, dw)) {
    const WeightPanels<T> weight(tape, call.weight, Form::kPlain, dy.rows());
    return run_together<T>(context, {context, dy, weight.panels, dx.rows, dx.options},
                           {context, dy, x, dw.rows, dw.store});
  }
  if (dx) multiply_by<T>(tape, dy, call.weight, Form::kPlain, dx.rows, dx.options);
  if (dw) matmul_at_b(context, dy, x, dw.rows, dw.store);
}

template <class T>
void backward(Tape& tape, const LinearCall<T>& call) {
  const ProductRows<const T> dy = gradient_of_sums(tape, call), x = rows_of<const T>(call.x);
  if (call.changes.empty())
    pull_plain(tape, call, dy, x);
  else
    pull_changed(tape, call, dy, x);
  if (const auto db = tape.gradient_for<T>(call.bias)) {
    column_sums(tape.context(), dy, db.vec(), db.store);
  }
}

// Whether a result for one product is kept as that product rounds it. (ReLU needs its values.)
bool keeps_rounded(const Tape& tape, DType dtype, Activation f) {
  return dtype == DType::kFloat32 && f != Activation::kRelu &&
         operands_of<float>(tape.context()) == Operands::kPaired;
}

// linear() of a weight without magnitudes.
Variable product(Tape& tape, Variable x, Variable weight, Variable bias, const LinearUse& use) {
  const Activation f = use.activation;
  const index out = weight.rows();
  const DType dtype = weight.dtype();
  check_operand("linear", "weight", weight, out, x.columns(),
                x.dtype() == DType::kBFloat16 ? DType::kFloat32 : x.dtype());
  check_vector("linear", "bias", bias, out, dtype);
  check(blocks_of(weight) == nullptr || !weight.needs_gradient(),
        "linear: a weight that lies in blocks has no gradient");
  Variable y;
  with_type(dtype, [&]<class T>(std::type_identity<T>) {
    const std::span<ChangeCall<T>> changes = changes_of<T>(tape, weight, use);
    const std::span<const Variable> inputs = inputs_of<T>(tape, {x, weight, bias}, changes);
    const bool records = tape.records(inputs);
    const bool for_product = records && use.reader == ForReader::kProduct;
    // Rounded rows are written once, by one product.
    const bool rounded = for_product && changes.empty() && keeps_rounded(tape, dtype, f);
    y = tape.result(x.rows(), out, rounded ? DType::kBFloat16 : dtype);
    const Rows<T> slope = room_for_slope<T>(tape, f, y, records);
    MatmulOptions<T> options{.bias = bias.vec<T>(), .activation = f, .slope = slope};
    const ProductRows<const T> rows = rows_of<const T>(x);
    if (!rounded) options.store = write_changes<T>(tape, rows, changes, y.value<T>(), records);
    multiply_by<T>(tape, rows, weight, Form::kTransposed, rows_of<T>(y), options);
    if (for_product) tape.set_slope<T>(y, slope.data);
    tape.record(y, inputs, [call = LinearCall<T>{x, weight, bias, y, f, slope, changes}](Tape& t) {
      backward<T>(t, call);
    });
  });
  return y;
}

}  // namespace

Variable linear(Tape& tape, Variable x, Variable weight, Variable bias, Activation f,
                ForReader reader) {
  return linear(tape, x, weight, bias, {.activation = f, .reader = reader});
}

Variable linear(Tape& tape, Variable x, Variable weight, Variable bias, const LinearUse& use) {
  const Parameter* const parameter = weight.parameter();
  if (parameter == nullptr || !parameter->has_magnitudes()) {
    return product(tape, x, weight, bias, use);
  }
  const Variable u = product(tape, x, weight, {}, {.names = use.names});
  const Variable z = scaled_by_magnitudes(tape, u, *parameter, bias);
  return use.activation == Activation::kNone ? z : activation(tape, use.activation, z);
}

}  // namespace fovea
