// SPDX-License-Identifier: Apache-2.0

#include "fovea/grad/ops.h"
#include "fovea/grad/ops/common.h"
#include "fovea/kernel/crf.h"
#include "fovea/kernel/cross_entropy.h"
#include "fovea/kernel/gemm.h"
#include "fovea/kernel/softmax.h"

namespace fovea {

Variable softmax(Tape& tape, Variable x) {
  const Variable y = tape.result(x.rows(), x.columns(), x.dtype());
  with_type(x.dtype(), [&]<class T>(std::type_identity<T>) {
    softmax_forward(tape.context(), x.value<T>(), y.value<T>());
    tape.record(y, {x}, [=](Tape& t) {
      write_or_add(t.context(), t.gradient_for<T>(x), [&](Rows<T> dx) {
        softmax_backward(t.context(), y.value<T>(), t.gradient_of<T>(y), dx);
      });
    });
  });
  return y;
}

// The gradient of the logits is computed together with the loss, while a row is in the cache;
// backward only multiplies it.
Variable cross_entropy(Tape& tape, Variable logits, const Targets& targets, double factor) {
  const index N = logits.rows(), V = logits.columns();
  const Variable loss = tape.result(1, 1, logits.dtype());
  with_type(logits.dtype(), [&]<class T>(std::type_identity<T>) {
    const bool records = tape.records({logits});
    const Vec<T> losses{tape.saved<T>(N), N};
    const Rows<T> saved = records ? Rows<T>(tape.saved<T>(N * V), N, V) : Rows<T>();
    const CrossEntropy result =
        cross_entropy(tape.context(), logits.value<T>(), targets, factor, losses, saved);
    loss.value<T>()[0][0] = static_cast<T>(factor * result.total);
    tape.record(loss, {logits}, [=](Tape& t) {
      write_or_add(t.context(), t.gradient_for<T>(logits), [&](Rows<T> dx) {
        scale(t.context(), static_cast<double>(t.gradient_of<T>(loss)[0][0]), saved, dx);
      });
    });
  });
  return loss;
}

Variable binary_cross_entropy(Tape& tape, Variable logits, Variable targets,
                              const BinaryWeights& weights, double factor) {
  const index N = logits.rows(), K = logits.columns();
  check_operand("binary_cross_entropy", "targets", targets, N, K, logits.dtype());
  check(!targets.needs_gradient(), "binary_cross_entropy: targets have no gradient");
  const Variable loss = tape.result(1, 1, logits.dtype());
  with_type(logits.dtype(), [&]<class T>(std::type_identity<T>) {
    const bool records = tape.records({logits});
    const Vec<T> losses{tape.saved<T>(N), N};
    const Rows<T> saved = records ? Rows<T>(tape.saved<T>(N * K), N, K) : Rows<T>();
    const BinaryTargets<T> wanted{targets.value<T>(), weights};
    const double total =
        binary_cross_entropy<T>(tape.context(), logits.value<T>(), wanted, factor, losses, saved);
    loss.value<T>()[0][0] = static_cast<T>(factor * total);
    tape.record(loss, {logits}, [=](Tape& t) {
      write_or_add(t.context(), t.gradient_for<T>(logits), [&](Rows<T> dx) {
        scale(t.context(), static_cast<double>(t.gradient_of<T>(loss)[0][0]), saved, dx);
      });
    });
  });
  return loss;
}

Variable squared_error(Tape& tape, Variable x, Variable targets, double factor) {
  check_operand("squared_error", "targets", targets, x.rows(), x.columns(), x.dtype());
  const Variable error = add(tape, x, scale(tape, targets, -1));
  return scale(tape, sum(tape, multiply(tape, error, error)), factor);
}

Variable linear_cross_entropy(Tape& tape, Variable x, Variable weight, Variable bias,
                              const Targets& targets, const LinearLossOptions& options) {
  const index N = x.rows(), C = x.columns(), V = weight.rows();
  check_operand("linear_cross_entropy", "weight", weight, V, C, x.dtype());
  check_vector("linear_cross_entropy", "bias", bias, V, x.dtype());
  if (Parameter* const p = weight.parameter(); p != nullptr && !p->changes.empty()) {
    const Variable logits = linear(tape, x, weight, bias);
    const Variable capped = options.softcap > 0 ? softcap(tape, logits, options.softcap) : logits;
    return cross_entropy(tape, capped, targets, options.scale);
  }
  const Variable loss = tape.result(1, 1, x.dtype());
  with_type(x.dtype(), [&]<class T>(std::type_identity<T>) {
    LinearCrossEntropy<T> call;
    call.x = x.value<T>();
    call.blocks = blocks_of(weight);
    if (call.blocks == nullptr) call.weight = weight.value<T>();
    call.bias = bias.vec<T>();
    call.targets = targets;
    call.scale = options.scale;
    call.softcap = options.softcap;
    if (tape.records({x, weight, bias})) {
      if (x.needs_gradient()) call.dx = Rows<T>(tape.saved<T>(N * C), N, C);
      const auto dweight = tape.gradient_for<T>(weight);
      const auto dbias = tape.gradient_for<T>(bias);
      call.dweight = dweight.rows;
      call.dweight_store = dweight.store;
      call.dbias = dbias.vec();
      call.dbias_store = dbias.store;
    }
    if (Parameter* const p = weight.parameter();
        p != nullptr && call.blocks == nullptr && !reads_in_place(tape, N)) {
      const auto packed = [&](Form form) {
        return &p->packed.get<T>(tape.context(), call.weight, form, p->version);
      };
      call.packed_transposed = packed(Form::kTransposed);
      if (call.dx.data != nullptr &&
          !reads_well_in_place(call.weight, Form::kPlain, operands_of<T>(tape.context()))) {
        call.packed = packed(Form::kPlain);
      }
    }
    const CrossEntropy result = linear_cross_entropy(tape.context(), call);
    loss.value<T>()[0][0] = static_cast<T>(options.scale * result.total);
    tape.record(loss, {x, weight, bias}, [=, dx = call.dx](Tape& t) {
      check(
          t.gradient_of<T>(loss)[0][0] == T{1},
          "linear_cross_entropy: backward must reach it with factor 1; give it the scale instead");
      pass_on<T>(t.context(), dx, t.gradient_for<T>(x));
    });
  });
  return loss;
}

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
