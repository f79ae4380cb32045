// SPDX-License-Identifier: Apache-2.0
#include "fovea/kernel/elementwise.h"

#include "fovea/grad/ops.h"
#include "fovea/grad/ops/common.h"

namespace fovea {

Variable activation(Tape& tape, Activation f, Variable x) {
  const Variable y = tape.result(x.rows(), x.columns(), x.dtype());
  with_type(x.dtype(), [&]<class T>(std::type_identity<T>) {
    activation_forward(tape.context(), f, x.value<T>(), y.value<T>());
    tape.record(y, {x}, [=](Tape& t) {
      write_or_add(t.context(), t.gradient_for<T>(x), [&](Rows<T> dx) {
        activation_backward(t.context(), f, x.value<T>(), t.gradient_of<T>(y), dx);
      });
    });
  });
  return y;
}

Variable add(Tape& tape, Variable a, Variable b) {
  check_operand("add", "b", b, a.rows(), a.columns(), a.dtype());
  const Variable y = tape.result(a.rows(), a.columns(), a.dtype());
  with_type(a.dtype(), [&]<class T>(std::type_identity<T>) {
    add_forward(tape.context(), a.value<T>(), b.value<T>(), y.value<T>());
    tape.record(y, {a, b}, [=](Tape& t) {
      pass_on(t.context(), t.gradient_of<T>(y), t.gradient_for<T>(a));
      hand_over<T>(t, y, b);
    });
  });
  return y;
}

Variable multiply(Tape& tape, Variable a, Variable b) {
  check_operand("multiply", "b", b, a.rows(), a.columns(), a.dtype());
  const Variable y = tape.result(a.rows(), a.columns(), a.dtype());
  with_type(a.dtype(), [&]<class T>(std::type_identity<T>) {
    multiply(tape.context(), a.value<T>(), b.value<T>(), y.value<T>());
    tape.record(y, {a, b}, [=](Tape& t) {
      write_or_add(t.context(), t.gradient_for<T>(a), [&](Rows<T> da) {
        multiply(t.context(), t.gradient_of<T>(y), b.value<T>(), da);
      });
      write_or_add(t.context(), t.gradient_for<T>(b), [&](Rows<T> db) {
        multiply(t.context(), t.gradient_of<T>(y), a.value<T>(), db);
      });
    });
  });
  return y;
}

Variable scale(Tape& tape, Variable x, double factor) {
  const Variable y = tape.result(x.rows(), x.columns(), x.dtype());
  with_type(x.dtype(), [&]<class T>(std::type_identity<T>) {
    scale(tape.context(), factor, x.value<T>(), y.value<T>());
    tape.record(y, {x}, [=](Tape& t) {
      write_or_add(t.context(), t.gradient_for<T>(x),
                   [&](Rows<T> dx) { scale(t.context(), factor, t.gradient_of<T>(y), dx); });
    });
  });
  return y;
}

}  // namespace fovea
