// SPDX-License-Identifier: Apache-2.0
#include "fovea/grad/ops.h"
#include "fovea/grad/ops/common.h"

namespace fovea {

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
