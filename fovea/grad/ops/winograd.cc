// SPDX-License-Identifier: Apache-2.0
#include "fovea/kernel/winograd.h"

#include "fovea/grad/ops/convolution_call.h"

namespace fovea {

namespace {

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
struct Kept {
  PairLayout layout;
  Four<const T> u;
  Four<T> differences;
  Rows<const T> slope;
};

template <class T>
void backward(Tape& tape, const ConvolutionCall& call, const Kept<T>& kept) {
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

}  // namespace

bool uses_winograd(const Tape& tape, const ConvolutionCall& call) {
  return tape.context().precision() == Precision::kFloat32 &&
         winograd_pays(call.window, call.x.columns(), call.y.columns()) &&
         tape.records({call.x, call.weight, call.bias});
}

template <class T>
void winograd_convolution(Tape& tape, const ConvolutionCall& call) {
  const Context& context = tape.context();
  const index N = call.x.rows(), in = call.x.columns(), out = call.y.columns();
  const index S = call.offsets.size - 1;
  const auto layout = PairLayout::of(call.offsets, {tape.saved<PairLayout::Run>(S), S});
  const Rows<T> u1(tape.saved<T>(out * in), out, in), u2(tape.saved<T>(out * in), out, in);
  winograd_weights<T>(context, call.taps<T>(), u1, u2);
  Kept<T> kept{layout, factors<T>(call.taps<T>(), u1, u2), {}, {}};
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
              [call, kept](Tape& t) { backward<T>(t, call, kept); });
}

template void winograd_convolution<float>(Tape&, const ConvolutionCall&);
template void winograd_convolution<double>(Tape&, const ConvolutionCall&);

}  // namespace fovea
