// SPDX-License-Identifier: Apache-2.0
#include "fovea/kernel/crf.h"

#include "fovea/grad/ops.h"
#include "fovea/grad/ops/common.h"

namespace fovea {

namespace {

/// Memory for the gradients until backward reaches them.
template <class T>
CrfGradient<T> saved_gradient(Tape& tape, index N, index K) {
  return {{tape.saved<T>(N * K), N, K},
          {tape.saved<T>(K * K), K, K},
          {tape.saved<T>(K), K},
          {tape.saved<T>(K), K}};
}

template <class T>
void pull_saved(Tape& tape, double factor, Rows<const T> saved, Variable x) {
  write_or_add(tape.context(), tape.gradient_for<T>(x),
               [&](Rows<T> dx) { scale(tape.context(), factor, saved, dx); });
}

}  // namespace

// The gradients are computed together with the loss, while the sums over paths are at hand;
// backward only multiplies them.
Variable crf_loss(Tape& tape, Variable emissions, const CrfVariables& scores,
                  Vec<const std::int32_t> tags, const PackedRows& rows, double factor) {
  const index N = emissions.rows(), K = emissions.columns();
  const Variable transitions = scores.transitions, start = scores.start, end = scores.end;
  check_operand("crf_loss", "transitions", transitions, K, K, emissions.dtype());
  check_operand("crf_loss", "start", start, 1, K, emissions.dtype());
  check_operand("crf_loss", "end", end, 1, K, emissions.dtype());
  const Vec<const std::int32_t> offsets = offsets_of(tape, "crf_loss", rows, N);
  const Variable loss = tape.result(1, 1, emissions.dtype());
  with_type(emissions.dtype(), [&]<class T>(std::type_identity<T>) {
    const bool records = tape.records({emissions, transitions, start, end});
    const CrfGradient<T> saved = records ? saved_gradient<T>(tape, N, K) : CrfGradient<T>();
    const index S = offsets.size - 1;
    const double total = crf_loss<T>(
        tape.context(), {transitions.value<T>(), start.vec<T>(), end.vec<T>(), scores.allowed},
        {emissions.value<T>(), offsets}, {tags, factor}, {tape.saved<double>(S), S}, saved);
    loss.value<T>()[0][0] = static_cast<T>(factor * total);
    tape.record(loss, {emissions, transitions, start, end}, [=](Tape& t) {
      const auto by = static_cast<double>(t.gradient_of<T>(loss)[0][0]);
      pull_saved<T>(t, by, saved.emissions, emissions);
      pull_saved<T>(t, by, saved.transitions, transitions);
      pull_saved<T>(t, by, {saved.start.data, 1, K}, start);
      pull_saved<T>(t, by, {saved.end.data, 1, K}, end);
    });
  });
  return loss;
}

}  // namespace fovea
