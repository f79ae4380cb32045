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

// How the groups of columns are normalised: one call for each, or, for generation, where rows are
// contiguous, one call for all. (A gradient may lie elsewhere than its values.)
struct ColumnGroups {
  index D;
  bool is_one_call;

  index calls(index heads) const { return is_one_call ? 1 : heads; }

  template <class T>
  Rows<T> rows(Rows<T> x, index call) const {
    if (is_one_call) return {x.data, x.rows * x.columns / D, D};
    return x.columns_slice(call * D, (call + 1) * D);
  }
};

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
  check_vector("rms_norm", "gain", gain, C / heads, x.dtype());
  const Variable y = tape.result(N, C, x.dtype());
  with_type(x.dtype(), [&]<class T>(std::type_identity<T>) {
    const bool infers = tape.mode() == TapeMode::kInference;
    const ColumnGroups groups{C / heads, infers && x.value<T>().contiguous()};
    const index calls = groups.calls(heads), saved_of_call = N * heads / calls;
    T* const saved = tape.saved<T>(N * heads);
    for (index n = 0; n < calls; ++n) {
      rms_norm_forward(tape.context(), groups.rows<const T>(x.value<T>(), n), gain.vec<T>(),
                       epsilon, groups.rows(y.value<T>(), n),
                       {saved + n * saved_of_call, saved_of_call});
    }
    tape.record(y, {x, gain}, [=](Tape& t) {
      Scratch scratch;
      const auto dx = wanted_or_not(scratch, t.gradient_for<T>(x), x);
      const Vec<T> dgain = gradient_to_add_to<T>(t, gain).vec();
      for (index n = 0; n < heads; ++n) {
        rms_norm_backward<T>(t.context(), {.x = groups.rows<const T>(x.value<T>(), n),
                                           .gain = gain.vec<T>(),
                                           .saved = {saved + n * N, N},
                                           .dy = groups.rows<const T>(t.gradient_of<T>(y), n),
                                           .dx = groups.rows(dx.rows, n),
                                           .dgain = dgain,
                                           .dx_store = dx.store});
      }
    });
  });
  return y;
}

}  // namespace fovea
