// SPDX-License-Identifier: Apache-2.0
#include "fovea/kernel/norm.h"

#include "fovea/grad/ops.h"
#include "fovea/grad/ops/common.h"

namespace fovea {

namespace {

// The kernels always write dx. If x needs no gradient, dx goes to scratch memory.
template <class T>
GradientOut<T> wanted_or_not(Scratch& scratch, const GradientOut<T>& dx, Variable x) {
  if (dx) return dx;
  const index N = x.rows(), C = x.columns();
  return {{scratch.allocate<T>(N * C), N, C}, Store::kWrite};
}

// Group n of D columns.
template <class T>
Rows<T> group(Rows<T> x, index n, index D) {
  return x.columns_slice(n * D, (n + 1) * D);
}

}  // namespace

Variable layer_norm(Tape& tape, Variable x, Variable gain, Variable bias,
                    const LayerNormOptions& options) {
  const index N = x.rows(), C = x.columns();
  check_vector("layer_norm", "gain", gain, C, x.dtype());
  check_vector("layer_norm", "bias", bias, C, x.dtype());
  const Variable y = tape.result(N, C, x.dtype());
  with_type(x.dtype(), [&]<class T>(std::type_identity<T>) {
    const Rows<T> saved(tape.saved<T>(N * 2), N, 2);
    const NormParameters<T> parameters{gain.vec<T>(), bias.vec<T>()};
    layer_norm_forward(tape.context(), x.value<T>(), parameters, options, y.value<T>(), saved);
    tape.record(y, {x, gain, bias}, [=](Tape& t) {
      Scratch scratch;
      const auto dx = wanted_or_not(scratch, t.gradient_for<T>(x), x);
      layer_norm_backward<T>(t.context(), {.x = x.value<T>(),
                                           .gain = gain.vec<T>(),
                                           .options = options,
                                           .saved = saved,
                                           .dy = t.gradient_of<T>(y),
                                           .dx = dx.rows,
                                           .dgain = gradient_to_add_to<T>(t, gain).vec(),
                                           .dbias = gradient_to_add_to<T>(t, bias).vec(),
                                           .dx_store = dx.store});
    });
  });
  return y;
}

Variable rms_norm(Tape& tape, Variable x, Variable gain, double epsilon) {
  return rms_norm_heads(tape, x, gain, 1, epsilon);
}

Variable rms_norm_heads(Tape& tape, Variable x, Variable gain, index heads, double epsilon) {
  const index N = x.rows(), C = x.columns();
  check(heads > 0 && C % heads == 0, "rms_norm: {} columns are no multiple of {} heads", C, heads);
  const index D = C / heads;
  check_vector("rms_norm", "gain", gain, D, x.dtype());
  const Variable y = tape.result(N, C, x.dtype());
  with_type(x.dtype(), [&]<class T>(std::type_identity<T>) {
    T* const saved = tape.saved<T>(N * heads);
    for (index h = 0; h < heads; ++h) {
      rms_norm_forward(tape.context(), group<const T>(x.value<T>(), h, D), gain.vec<T>(), epsilon,
                       group(y.value<T>(), h, D), {saved + h * N, N});
    }
    tape.record(y, {x, gain}, [=](Tape& t) {
      Scratch scratch;
      const auto dx = wanted_or_not(scratch, t.gradient_for<T>(x), x);
      const Vec<T> dgain = gradient_to_add_to<T>(t, gain).vec();
      for (index h = 0; h < heads; ++h) {
        rms_norm_backward<T>(t.context(), {.x = group<const T>(x.value<T>(), h, D),
                                           .gain = gain.vec<T>(),
                                           .saved = {saved + h * N, N},
                                           .dy = group<const T>(t.gradient_of<T>(y), h, D),
                                           .dx = group(dx.rows, h, D),
                                           .dgain = dgain,
                                           .dx_store = dx.store});
      }
    });
  });
  return y;
}

}  // namespace fovea
