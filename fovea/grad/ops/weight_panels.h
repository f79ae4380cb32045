// SPDX-License-Identifier: Apache-2.0
// A weight in the layout that a product reads.
#pragma once

#include "fovea/grad/ops/common.h"
#include "fovea/kernel/gemm.h"

namespace fovea {

/// The weight itself where that is as fast, and in training if the product has few rows. A
/// parameter keeps its packed forms until it changes.
template <class T>
struct WeightPanels {
  /// `rows` of the product's left side.
  WeightPanels(const Tape& tape, Variable weight, Form form, index rows)
      : WeightPanels(tape, tape.context(), weight, weight.value<T>(), form, rows) {}
  /// `values` is the weight's memory in another shape, the same one for every product. The products
  /// are those of `context`.
  WeightPanels(const Tape& tape, const Context& context, Variable weight, Rows<const T> values,
               Form form, index rows) {
    const Operands operands = operands_of<T>(context);
    if (reads_in_place(tape, rows) || reads_well_in_place(values, form, operands)) {
      panels = panels_in_place(values, form, operands);
    } else if (Parameter* parameter = weight.parameter(); parameter != nullptr) {
      panels = parameter->packed.get<T>(context, values, form, parameter->version).panels();
    } else {
      own.pack(context, values, form);
      panels = own.panels();
    }
  }
  WeightPanels(const WeightPanels&) = delete;

  Panels<T> panels;
  PackedMatrix<T> own;
};

/// Panels of a matrix that every step makes anew; where packing is needed, `scratch` holds them.
template <class T>
Panels<T> panels_for_rows(const Context& context, Rows<const T> m, Form form, index rows,
                          Scratch& scratch) {
  const Operands operands = operands_of<T>(context);
  if (rows <= kRowsInPlace || reads_well_in_place(m, form, operands)) {
    return panels_in_place(m, form, operands);
  }
  const bool plain = form == Form::kPlain;
  const index size =
      packed_size<T>(plain ? m.rows : m.columns, plain ? m.columns : m.rows, operands);
  return pack_into(context, m, form, scratch.allocate<T>(size));
}

/// Memory for f', which is computed together with f, as they share most of their work. ReLU needs
/// none: its derivative follows from its result.
template <class T>
Rows<T> room_for_slope(Tape& tape, Activation f, Variable y, bool records) {
  if (f == Activation::kNone || f == Activation::kRelu || !records) return {};
  return {tape.saved<T>(y.rows() * y.columns()), y.rows(), y.columns()};
}

/// dy = dy f', in place, from what the forward has kept.
template <class T>
void pull_activation(const Context& context, Activation f, Rows<const T> y, Rows<const T> slope,
                     Rows<T> dy) {
  if (f == Activation::kRelu) {
    activation_backward(context, f, y, dy, dy);
  } else if (f != Activation::kNone) {
    multiply(context, dy, slope, dy);
  }
}

}  // namespace fovea
