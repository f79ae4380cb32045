// SPDX-License-Identifier: Apache-2.0
#include "fovea/kernel/dropout.h"

#include "fovea/grad/ops.h"
#include "fovea/grad/ops/common.h"

namespace fovea {

namespace {

DropoutMask mask_of(const DropoutOptions& options, const PackedRows& rows, TapeMode mode) {
  return {.p = mode == TapeMode::kTrain ? options.p : 0, .key = options.key, .rows = rows.rows};
}

}  // namespace

Variable dropout(Tape& tape, Variable x, const DropoutOptions& options, const PackedRows& rows) {
  const DropoutMask mask = mask_of(options, rows, tape.mode());
  if (mask.p == 0) return x;
  const Variable y = tape.result(x.rows(), x.columns(), x.dtype());
  with_type(x.dtype(), [&]<class T>(std::type_identity<T>) {
    dropout_forward(tape.context(), mask, x.value<T>(), y.value<T>());
    tape.record(y, {x}, [=](Tape& t) {
      write_or_add(t.context(), t.gradient_for<T>(x), [&](Rows<T> dx) {
        dropout_backward(t.context(), mask, t.gradient_of<T>(y), dx);
      });
    });
  });
  return y;
}

Variable residual(Tape& tape, Variable x, Variable f, const DropoutOptions& options,
                  const PackedRows& rows) {
  const DropoutMask mask = mask_of(options, rows, tape.mode());
  if (mask.p == 0) return add(tape, x, f);
  check_operand("residual", "f", f, x.rows(), x.columns(), x.dtype());
  const Variable y = tape.result(x.rows(), x.columns(), x.dtype());
  with_type(x.dtype(), [&]<class T>(std::type_identity<T>) {
    dropout_add_forward(tape.context(), mask, x.value<T>(), f.value<T>(), y.value<T>());
    tape.record(y, {x, f}, [=](Tape& t) {
      write_or_add(t.context(), t.gradient_for<T>(f), [&](Rows<T> df) {
        dropout_backward(t.context(), mask, t.gradient_of<T>(y), df);
      });
      hand_over<T>(t, y, x);
    });
  });
  return y;
}

}  // namespace fovea
