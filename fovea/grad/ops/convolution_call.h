// SPDX-License-Identifier: Apache-2.0
// Shared by the ways of computing a convolution.
#pragma once

#include "fovea/grad/ops/weight_panels.h"
#include "fovea/kernel/convolution.h"

namespace fovea {

struct ConvolutionCall {
  Variable x, weight, bias, y;
  Window window;
  Activation f;
  Vec<const std::int32_t> offsets;

  template <class T>
  Rows<const T> taps() const {
    return as_taps<const T>(weight.value<T>());
  }
  /// The weight or its gradient as [out, width in].
  template <class T>
  Rows<T> as_taps(Rows<T> rows) const {
    const index out = y.columns();
    if (rows.rows == out) return rows;
    return {rows.data, out, rows.rows / out * rows.columns};
  }
};

/// The gradient of the sums, in place of that of y; adds that of the bias.
template <class T>
Rows<const T> gradient_of_sums(Tape& tape, const ConvolutionCall& call, Rows<const T> slope) {
  const Rows<T> dy = tape.take_gradient<T>(call.y);
  pull_activation<T>(tape.context(), call.f, call.y.value<T>(), slope, dy);
  if (const auto db = tape.gradient_for<T>(call.bias)) {
    column_sums(tape.context(), dy, db.vec(), db.store);
  }
  return dy;
}

/// Whether a convolution is computed with two thirds of the multiplications (kernel/winograd.h).
/// The batch has no say, so that a sequence has the same bits alone; nor has inference, where a
/// sequence may come in parts of any lengths. Never in bfloat16, which would round sums of rows
/// instead of rows.
bool uses_winograd(const Tape& tape, const ConvolutionCall& call);
/// y, and the record of its gradients.
template <class T>
void winograd_convolution(Tape& tape, const ConvolutionCall& call);

}  // namespace fovea
