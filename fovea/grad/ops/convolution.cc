// SPDX-License-Identifier: Apache-2.0
#include "fovea/kernel/convolution.h"

#include "fovea/grad/ops.h"
#include "fovea/grad/ops/weight_panels.h"
#include "fovea/kernel/elementwise.h"

namespace fovea {

namespace {

struct ConvolutionCall {
  Variable x, weight, bias, y;
  Window window;
  Activation f;
  Vec<const std::int32_t> offsets;

  template <class T>
  Rows<const T> taps() const {
    return as_taps<const T>(weight.value<T>());
  }
  // The weight or its gradient as [out, width in].
  template <class T>
  Rows<T> as_taps(Rows<T> rows) const {
    const index out = y.columns();
    if (rows.rows == out) return rows;
    return {rows.data, out, rows.rows / out * rows.columns};
  }
};

// The gradient of the sums, in place of that of y; adds that of the bias.
template <class T>
Rows<const T> gradient_of_sums(Tape& tape, const ConvolutionCall& call, Rows<const T> slope) {
  const Rows<T> dy = tape.take_gradient<T>(call.y);
  pull_activation<T>(tape.context(), call.f, call.y.value<T>(), slope, dy);
  if (const auto db = tape.gradient_for<T>(call.bias)) {
    column_sums(tape.context(), dy, db.vec(), db.store);
  }
  return dy;
}

// ---- with two thirds of the multiplications

// The four matrices that the products multiply by, [out, in].
template <class T>
Four<const T> factors(Rows<const T> taps, Rows<const T> u1, Rows<const T> u2) {
  const index in = u1.columns;
  return {taps.columns_slice(0, in), u1, u2, taps.columns_slice(2 * in, 3 * in)};
}

template <class T>
std::array<Panels<T>, 4> panels_of(const Context& context, const Four<const T>& u, Form form,
                                   index rows, Scratch& scratch) {
  const auto panels = [&](const Rows<const T>& m) {
    return panels_for_rows<T>(context, m, form, rows, scratch);
  };
  return {panels(u[0]), panels(u[1]), panels(u[2]), panels(u[3])};
}

template <class T>
Four<T> saved_planes(Tape& tape, index rows, index columns) {
  Four<T> planes;
  for (Rows<T>& plane : planes) plane = {tape.saved<T>(rows * columns), rows, columns};
  return planes;
}

// The memory that the forward keeps for backward.
template <class T>
struct KeptForWinograd {
  PairLayout layout;
  Four<const T> u;
  Four<T> differences;
  Rows<const T> slope;
};

template <class T>
void pull_winograd(Tape& tape, const ConvolutionCall& call, const KeptForWinograd<T>& kept) {
  const Context& context = tape.context();
  const Rows<const T> dy = gradient_of_sums<T>(tape, call, kept.slope);
  if (const auto dx = tape.gradient_for<T>(call.x)) {
    Scratch scratch;
    const Four<const T> reversed = {kept.u[3], kept.u[1], kept.u[2], kept.u[0]};
    winograd_forward<T>(context,
                        {.x = dy,
                         .layout = &kept.layout,
                         .before = call.window.after(),
                         .u = panels_of<T>(context, reversed, Form::kPlain, dy.rows, scratch),
                         .y = dx.rows,
                         .options = {.store = dx.store}});
  }
  if (const auto dw = tape.gradient_for<T>(call.weight)) {
    winograd_weight_gradient<T>(context, {.differences = kept.differences,
                                          .dy = dy,
                                          .layout = &kept.layout,
                                          .dw = call.as_taps(dw.rows),
                                          .store = dw.store});
  }
}

// Whether a convolution is computed with two thirds of the multiplications.
// The batch has no say, so that a sequence has the same bits alone; nor has inference, where a
// sequence may come in parts of any lengths. Never in bfloat16, which would round sums of rows
// instead of rows.
bool uses_winograd(const Tape& tape, const ConvolutionCall& call) {
  return tape.context().precision() == Precision::kFloat32 &&
         winograd_pays(call.window, call.x.columns(), call.y.columns()) &&
         tape.records({call.x, call.weight, call.bias});
}

// y, and the record of its gradients.
template <class T>
void winograd_convolution(Tape& tape, const ConvolutionCall& call) {
  const Context& context = tape.context();
  const index N = call.x.rows(), in = call.x.columns(), out = call.y.columns();
  const index S = call.offsets.size - 1;
  const auto layout = PairLayout::of(call.offsets, {tape.saved<PairLayout::Run>(S), S});
  const Rows<T> u1(tape.saved<T>(out * in), out, in), u2(tape.saved<T>(out * in), out, in);
  winograd_weights<T>(context, call.taps<T>(), u1, u2);
  KeptForWinograd<T> kept{layout, factors<T>(call.taps<T>(), u1, u2), {}, {}};
  if (call.weight.needs_gradient()) kept.differences = saved_planes<T>(tape, layout.pairs, in);
  const Rows<T> slope = room_for_slope<T>(tape, call.f, call.y, true);
  kept.slope = slope;
  Scratch scratch;
  winograd_forward<T>(
      context, {.x = call.x.value<T>(),
                .layout = &layout,
                .before = call.window.before(),
                .u = panels_of<T>(context, kept.u, Form::kTransposed, N, scratch),
                .y = call.y.value<T>(),
                .options = {.bias = call.bias.vec<T>(), .activation = call.f, .slope = slope},
                .differences = kept.differences});
  tape.record(call.y, {call.x, call.weight, call.bias},
              [call, kept](Tape& t) { pull_winograd<T>(t, call, kept); });
}

// ---- by the sums themselves

// How many rows W has as [out, width in].
index check_weight(Variable x, Variable weight, index width) {
  check(weight.defined(), "convolution: weight is missing");
  const index in = x.columns(), rows = weight.rows(), columns = weight.columns();
  const bool is_flat = columns == width * in;
  const bool is_parameter = columns == in && rows % width == 0;
  check(is_flat || is_parameter,
        "convolution: weight must be [out, {} x {}], width x in; it is [{}, {}]", width, in, rows,
        columns);
  const index out = is_flat ? rows : rows / width;
  check_operand("convolution", "weight", weight, rows, columns, x.dtype());
  return out;
}

Window check_window(const ConvolutionOptions& o) {
  check(o.width > 0 && o.dilation > 0,
        "convolution: width and dilation must be positive; they are {} and {}", o.width,
        o.dilation);
  const index reach = checked_product(o.width - 1, o.dilation, "the reach of a convolution");
  constexpr index kMostReach = index{1} << 31;  // rows are numbered by 32 bits
  check(reach < kMostReach, "convolution: a window of {} rows is too wide", reach + 1);
  return {o.width, o.padding, o.dilation};
}

SpreadLayout lay_out(Tape& tape, const ConvolutionCall& call) {
  const index S = call.offsets.size - 1;
  return SpreadLayout::of(call.offsets, call.window.gap(), {tape.saved<SpreadLayout::Run>(S), S});
}

void check_state(const Tape& tape, const PackedRows& rows, const ConvolutionOptions& o) {
  if (o.state == nullptr) return;
  check(o.padding == Padding::kCausal, Hint{"train the model with Padding::kCausal"},
        "convolution: only a causal convolution continues a sequence");
  check(tape.mode() == TapeMode::kInference && rows.count() == 1,
        "convolution: a state is for one sequence in inference mode");
}

// The rows that the state has seen take the place of the zeros before x; the last rows of both
// become the state.
template <class T>
void continue_state(ConvolutionState& state, index reach, index N, Rows<T> spread) {
  const index in = spread.columns;
  const Shape shape{reach, in};
  if (state.rows.defined()) {
    check(state.rows.shape() == shape && state.rows.dtype() == kDTypeOf<T>,
          Hint{"a state belongs to one layer; clear it before another sequence"},
          "convolution: the state must be {} {}; it is {}", to_string(kDTypeOf<T>),
          to_string(shape), state.rows.describe());
    std::copy_n(state.rows.data<T>(), reach * in, spread.data);
  } else {
    state.rows = Tensor::empty(shape, kDTypeOf<T>);
  }
  std::copy_n(spread[N], reach * in, state.rows.data<T>());
}

template <class T>
Rows<const T> spread(const Context& context, const SpreadLayout& layout, Rows<const T> x,
                     T* memory) {
  const Rows<T> to(memory, layout.rows, x.columns);
  spread_rows(context, x, layout, to);
  return to;
}

// Taps of rows that are not side by side are products of their own, whose rows of weights are
// packed together: pairs of bfloat16 would be of two taps if the columns are odd.
Context context_for(const Tape& tape, const Window& w, index columns) {
  const bool in_one = w.dilation == 1 || w.width == 1;
  const Context& context = tape.context();
  return in_one || columns % 2 == 0 ? context : context.with(Precision::kFloat32);
}

template <class T>
void input_gradient(Tape& tape, const ConvolutionCall& call, const SpreadLayout& layout,
                    Rows<const T> dy, const GradientOut<T>& dx) {
  const Window& w = call.window;
  const index out = dy.columns, in = dx.rows.columns, width = w.width;
  const Context context = context_for(tape, w, out);
  const auto multiply_by = [&](const Panels<T>& taps) {
    window_product<T>(context, {.spread = dy,
                                .layout = &layout,
                                .before = w.after(),
                                .width = width,
                                .dilation = w.dilation,
                                .taps = taps,
                                .y = dx.rows,
                                .options = {.store = dx.store}});
  };
  if (width == 1) {
    const WeightPanels<T> panels(tape, context, call.weight, call.taps<T>(), Form::kPlain,
                                 dx.rows.rows);
    return multiply_by(panels.panels);
  }
  Scratch scratch;
  const Rows<T> reversed(scratch.allocate<T>(width * out * in), width * out, in);
  reverse_taps<T>(context, call.taps<T>(), width, reversed);
  multiply_by(panels_for_rows<T>(context, reversed, Form::kPlain, dx.rows.rows, scratch));
}

template <class T>
void backward(Tape& tape, const ConvolutionCall& call, const SpreadLayout& layout, Rows<const T> x,
              Rows<const T> slope) {
  const Context& context = tape.context();
  Rows<const T> dy = gradient_of_sums<T>(tape, call, slope);
  Scratch scratch;
  if (call.window.reach() > 0) {
    dy = spread<T>(context, layout, dy, scratch.allocate<T>(layout.rows * dy.columns));
  }
  if (const auto dx = tape.gradient_for<T>(call.x)) input_gradient(tape, call, layout, dy, dx);
  if (const auto dw = tape.gradient_for<T>(call.weight)) {
    taps_gradient<T>(context, {.x = x,
                               .dy = dy,
                               .gap = layout.gap,
                               .window = call.window,
                               .dw = call.as_taps(dw.rows),
                               .store = dw.store});
  }
}

template <class T>
void forward(Tape& tape, const ConvolutionCall& call, ConvolutionState* state) {
  const Window& w = call.window;
  const index N = call.x.rows(), in = call.x.columns();
  const Context context = context_for(tape, w, in);
  const bool records = tape.records({call.x, call.weight, call.bias});
  const SpreadLayout layout = lay_out(tape, call);
  Rows<const T> x = call.x.value<T>();
  Scratch scratch;
  if (w.reach() > 0) {
    const index values = checked_product(layout.rows, in, "rows of a convolution");
    T* const memory = records ? tape.saved<T>(values) : scratch.allocate<T>(values);
    x = spread<T>(context, layout, x, memory);
    if (state != nullptr) continue_state<T>(*state, w.reach(), N, {memory, layout.rows, in});
  }
  const Rows<T> slope = room_for_slope<T>(tape, call.f, call.y, records);
  const WeightPanels<T> panels(tape, context, call.weight, call.taps<T>(), Form::kTransposed, N);
  window_product<T>(
      context, {.spread = x,
                .layout = &layout,
                .before = w.before(),
                .width = w.width,
                .dilation = w.dilation,
                .taps = panels.panels,
                .y = call.y.value<T>(),
                .options = {.bias = call.bias.vec<T>(), .activation = call.f, .slope = slope}});
  tape.record(call.y, {call.x, call.weight, call.bias},
              [call, layout, x, slope](Tape& t) { backward<T>(t, call, layout, x, slope); });
}

}  // namespace

Variable convolution(Tape& tape, Variable x, Variable weight, Variable bias, const PackedRows& rows,
                     const ConvolutionOptions& options) {
  const Window window = check_window(options);
  const index out = check_weight(x, weight, window.width);
  check_vector("convolution", "bias", bias, out, x.dtype());
  check_state(tape, rows, options);
  const Variable y = tape.result(x.rows(), out, x.dtype());
  const ConvolutionCall call{x,
                             weight,
                             bias,
                             y,
                             window,
                             options.activation,
                             offsets_of(tape, "convolution", rows, x.rows())};
  if (x.rows() == 0 && options.state != nullptr) return y;
  with_type(x.dtype(), [&]<class T>(std::type_identity<T>) {
    if (uses_winograd(tape, call)) {
      winograd_convolution<T>(tape, call);
    } else {
      forward<T>(tape, call, options.state);
    }
  });
  return y;
}

Variable glu(Tape& tape, Variable x) {
  check(x.columns() % 2 == 0, "glu: x needs values and gates, an even number of columns; it has {}",
        x.columns());
  const Variable y = tape.result(x.rows(), x.columns() / 2, x.dtype());
  with_type(x.dtype(), [&]<class T>(std::type_identity<T>) {
    glu_forward(tape.context(), x.value<T>(), y.value<T>());
    tape.record(y, {x}, [=](Tape& t) {
      write_or_add(t.context(), t.gradient_for<T>(x), [&](Rows<T> dx) {
        glu_backward(t.context(), x.value<T>(), t.gradient_of<T>(y), dx);
      });
    });
  });
  return y;
}

}  // namespace fovea
