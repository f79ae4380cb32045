// SPDX-License-Identifier: Apache-2.0
#include "fovea/kernel/elementwise.h"

#include "fovea/grad/ops.h"
#include "fovea/grad/ops/common.h"
#include "fovea/kernel/dropout.h"

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

Variable softcap(Tape& tape, Variable x, double cap) {
  check(cap > 0, "softcap: the cap must be over 0; it is {}", cap);
  return scale(tape, activation(tape, Activation::kTanh, scale(tape, x, 1 / cap)), cap);
}

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

namespace {

// factor x the sum of all elements, summed in double, in ascending order of rows.
Variable scaled_sum(Tape& tape, Variable x, double factor) {
  const Variable y = tape.result(1, 1, x.dtype());
  with_type(x.dtype(), [&]<class T>(std::type_identity<T>) {
    double total = 0;
    for (index n = 0; n < x.rows(); ++n) {
      const T* row = x.value<T>()[n];
      for (index c = 0; c < x.columns(); ++c) total += static_cast<double>(row[c]);
    }
    y.value<T>()[0][0] = static_cast<T>(factor * total);
    tape.record(y, {x}, [=](Tape& t) {
      const T each = static_cast<T>(factor) * t.gradient_of<T>(y)[0][0];
      write_or_add(t.context(), t.gradient_for<T>(x),
                   [&](Rows<T> dx) { fill(t.context(), each, dx); });
    });
  });
  return y;
}

}  // namespace

Variable sum(Tape& tape, Variable x) { return scaled_sum(tape, x, 1); }

Variable mean(Tape& tape, Variable x) {
  const index n = x.rows() * x.columns();
  check(n > 0, "mean: there is nothing to take the mean of");
  return scaled_sum(tape, x, 1.0 / static_cast<double>(n));
}

}  // namespace fovea
