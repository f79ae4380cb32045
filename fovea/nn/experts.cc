// SPDX-License-Identifier: Apache-2.0
// The layer, its ops and their kernels: no other layer has them.
#include "fovea/nn/experts.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "fovea/base/memory.h"
#include "fovea/grad/ops/common.h"
#include "fovea/grad/ops/weight_panels.h"
#include "fovea/kernel/gemm.h"

namespace fovea {

namespace {

// ------------------------------------------------------------------------------------- the choice

// The numbers of the k highest scores. Each round takes the highest of those that are left, so that
// scores that are no numbers still name k columns.
template <class T>
void highest(const T* scores, index count, index k, std::int32_t* ids) {
  for (index n = 0; n < k; ++n) {
    index best = -1;
    for (index e = 0; e < count; ++e) {
      if (std::find(ids, ids + n, static_cast<std::int32_t>(e)) != ids + n) continue;
      if (best < 0 || scores[e] > scores[best]) best = e;
    }
    ids[n] = static_cast<std::int32_t>(best);
  }
}

template <class T>
void softmax_of_chosen(const T* scores, const std::int32_t* ids, index k, T* weights) {
  double sum = 0;
  const auto power = [&](index n) {
    return std::exp(static_cast<double>(scores[ids[n]]) - static_cast<double>(scores[ids[0]]));
  };
  for (index n = 0; n < k; ++n) sum += power(n);
  for (index n = 0; n < k; ++n) weights[n] = static_cast<T>(power(n) / sum);
}

// ds[i] = w[i] (dw[i] - sum of w dw), 0 of those that were not chosen.
template <class T>
void pull_choice(Tape& tape, Variable scores, Variable weights, const std::int32_t* ids) {
  const Rows<const T> dw = tape.gradient_of<T>(weights), w = weights.value<T>();
  const index k = w.columns;
  write_or_add<T>(tape.context(), tape.gradient_for<T>(scores), [&](Rows<T> ds) {
    tape.context().for_ranges(
        ds.rows, static_cast<double>(ds.columns), [&](index begin, index end) {
          for (index t = begin; t < end; ++t) {
            std::fill_n(ds[t], ds.columns, T{0});
            double mean = 0;
            for (index n = 0; n < k; ++n) mean += static_cast<double>(w[t][n]) * dw[t][n];
            for (index n = 0; n < k; ++n) {
              ds[t][ids[t * k + n]] = static_cast<T>(w[t][n] * (dw[t][n] - mean));
            }
          }
        });
  });
}

// ------------------------------------------------------------------------------------- the network

constexpr double kAlpha = 1.702, kLimit = 7;

struct Gate {
  double value, dg, du;  // and its derivatives by g and u
};

Gate gate(double g, double u) {
  const double low = std::min(g, kLimit), up = std::clamp(u, -kLimit, kLimit) + 1;
  const double share = 1 / (1 + std::exp(-kAlpha * low));
  const double slope = share + kAlpha * low * share * (1 - share);
  return {up * low * share, g <= kLimit ? up * slope : 0,
          u >= -kLimit && u <= kLimit ? low * share : 0};
}

constexpr double kCostOfGate = 50;  // flops

template <class T>
void gate_rows(const Context& context, Rows<const T> h, Rows<T> a) {
  const double cost = kCostOfGate * static_cast<double>(a.columns);
  context.for_ranges(a.rows, cost, [&](index begin, index end) {
    for (index n = begin; n < end; ++n) {
      for (index f = 0; f < a.columns; ++f) {
        a[n][f] = static_cast<T>(gate(h[n][2 * f], h[n][2 * f + 1]).value);
      }
    }
  });
}

template <class T>
void pull_gate(const Context& context, Rows<const T> h, Rows<const T> da, Rows<T> dh) {
  const double cost = kCostOfGate * static_cast<double>(da.columns);
  context.for_ranges(da.rows, cost, [&](index begin, index end) {
    for (index n = begin; n < end; ++n) {
      for (index f = 0; f < da.columns; ++f) {
        const Gate at = gate(h[n][2 * f], h[n][2 * f + 1]);
        dh[n][2 * f] = static_cast<T>(at.dg * da[n][f]);
        dh[n][2 * f + 1] = static_cast<T>(at.du * da[n][f]);
      }
    }
  });
}

// ------------------------------------------------------------------------------- sorted by experts

// Row p of the sorted ones is row order[p] / k, for the choice order[p] % k; choice n is row
// places[n].
struct Sorted {
  index k = 0, experts = 0, count = 0;
  std::int32_t *order = nullptr, *places = nullptr, *offsets = nullptr;
  bool is_plan = false;

  // A plan knows no choice: one expert has all rows, which takes no less than any.
  index begin(index e) const { return is_plan ? (e == 0 ? 0 : count) : offsets[e]; }
  index end(index e) const { return is_plan ? count : offsets[e + 1]; }
};

Sorted sort_by_expert(Tape& tape, Vec<const std::int32_t> ids, index k, index experts) {
  Sorted s{.k = k,
           .experts = experts,
           .count = ids.size,
           .order = tape.saved<std::int32_t>(ids.size),
           .places = tape.saved<std::int32_t>(ids.size),
           .offsets = tape.saved<std::int32_t>(experts + 1),
           .is_plan = tape.context().plan() != nullptr};
  tape.context().for_each(1, [&](index) {
    std::fill_n(s.offsets, experts + 1, 0);
    for (const std::int32_t id : ids) ++s.offsets[id + 1];
    for (index e = 0; e < experts; ++e) s.offsets[e + 1] += s.offsets[e];
    std::vector<std::int32_t> next(s.offsets, s.offsets + experts);
    for (index n = 0; n < ids.size; ++n) {
      const std::int32_t place = next[static_cast<std::size_t>(ids[n])]++;
      s.order[place] = static_cast<std::int32_t>(n);
      s.places[n] = place;
    }
  });
  return s;
}

// to[p] = the row that sorted row p stands for, times its weight.
template <class T>
void gather(const Context& context, const Sorted& s, Rows<const T> x, Rows<T> to,
            Rows<const T> weights = {}) {
  context.for_ranges(to.rows, static_cast<double>(2 * to.columns), [&](index begin, index end) {
    for (index p = begin; p < end; ++p) {
      const index n = s.order[p];
      const T* const from = x[n / s.k];
      const T factor = weights.data == nullptr ? T{1} : weights[n / s.k][n % s.k];
      for (index c = 0; c < to.columns; ++c) to[p][c] = factor * from[c];
    }
  });
}

// to[t] = the sum of its sorted rows, each times its weight, in the order of the choices.
template <class T>
void add_up(const Context& context, const Sorted& s, Rows<const T> sorted, Rows<T> to,
            Rows<const T> weights = {}) {
  const double cost = static_cast<double>(2 * s.k * to.columns);
  context.for_ranges(to.rows, cost, [&](index begin, index end) {
    for (index t = begin; t < end; ++t) {
      std::fill_n(to[t], to.columns, T{0});
      for (index n = 0; n < s.k; ++n) {
        const T* const from = sorted[s.places[t * s.k + n]];
        const T factor = weights.data == nullptr ? T{1} : weights[t][n];
        for (index c = 0; c < to.columns; ++c) to[t][c] += factor * from[c];
      }
    }
  });
}

template <class T>
Rows<T> scratch_rows(Scratch& scratch, index rows, index columns) {
  return {scratch.allocate<T>(rows * columns), rows, columns};
}

// The rows of a weight that are those of expert e.
template <class T>
Rows<T> part_of(Rows<T> weight, index e, index experts) {
  const index rows = weight.rows / experts;
  return weight.slice(e * rows, (e + 1) * rows);
}

template <class T>
struct ExpertMatrices {
  Rows<const T> weight, biases = {};
};

// y = x W^T + b or, without biases, x W, each sorted row by its expert's.
template <class T>
void multiply_sorted(const Context& context, const Sorted& s, Rows<const T> x,
                     const ExpertMatrices<T>& matrices, Rows<T> y) {
  const auto& [weight, biases] = matrices;
  const Form form = biases.data == nullptr ? Form::kPlain : Form::kTransposed;
  for (index e = 0; e < s.experts; ++e) {
    const index begin = s.begin(e), end = s.end(e);
    if (begin == end) continue;
    Scratch scratch;
    const Panels<T> panels =
        panels_for_rows<T>(context, part_of(weight, e, s.experts), form, end - begin, scratch);
    const Vec<const T> bias =
        biases.data == nullptr ? Vec<const T>() : Vec<const T>(biases[e], biases.columns);
    matmul<T>(context, x.slice(begin, end), panels, y.slice(begin, end), {.bias = bias});
  }
}

// dW = dy^T x and db = the sums of dy, of the sorted rows of each expert.
template <class T>
void pull_weights(Tape& tape, const Sorted& s, Rows<const T> dy, Rows<const T> x, Variable weight,
                  Variable biases) {
  const Context& context = tape.context();
  const GradientOut<T> dw = tape.gradient_for<T>(weight), db = tape.gradient_for<T>(biases);
  for (index e = 0; e < s.experts; ++e) {
    const index begin = s.begin(e), end = s.end(e);
    if (dw) {
      const Rows<T> to = part_of(dw.rows, e, s.experts);
      if (begin < end) {
        matmul_at_b<T>(context, dy.slice(begin, end), x.slice(begin, end), to, dw.store);
      } else if (dw.store == Store::kWrite) {
        fill(context, T{0}, to);
      }
    }
    if (!db) continue;
    const Vec<T> to(db.rows[e], db.rows.columns);
    if (begin < end) {
      column_sums<T>(context, dy.slice(begin, end), to, db.store);
    } else if (db.store == Store::kWrite) {
      fill(context, T{0}, Rows<T>(to.data, 1, to.size));
    }
  }
}

template <class T>
struct ExpertsCall {
  Variable x, weights, y;
  ExpertWeights experts;
  Sorted sorted;
  Rows<T> h, o;  // [N k, 2 F], [N k, C]: of each sorted row before its gate, and at the end
};

template <class T>
void forward(Tape& tape, const ExpertsCall<T>& call) {
  const Context& context = tape.context();
  const Sorted& s = call.sorted;
  const Variable from = call.x, y = call.y, weights = call.weights;
  const ExpertWeights& w = call.experts;
  Scratch scratch;
  const Rows<T> x = scratch_rows<T>(scratch, s.count, from.columns()),
                a = scratch_rows<T>(scratch, s.count, call.h.columns / 2);
  gather<T>(context, s, from.value<T>(), x);
  multiply_sorted<T>(context, s, x, {w.in.value<T>(), w.in_bias.value<T>()}, call.h);
  gate_rows<T>(context, call.h, a);
  multiply_sorted<T>(context, s, a, {w.out.value<T>(), w.out_bias.value<T>()}, call.o);
  add_up<T>(context, s, call.o, y.value<T>(), weights.value<T>());
}

// Of the weights of the choices: the products of what an expert said and dy.
template <class T>
void pull_choices(const Context& context, const ExpertsCall<T>& call, Rows<const T> dy,
                  Rows<T> dw) {
  const index k = call.sorted.k;
  context.for_ranges(dw.rows, static_cast<double>(2 * k * dy.columns), [&](index begin, index end) {
    for (index t = begin; t < end; ++t) {
      for (index n = 0; n < k; ++n) {
        const T* const o = call.o[call.sorted.places[t * k + n]];
        double sum = 0;
        for (index c = 0; c < dy.columns; ++c) sum += static_cast<double>(o[c]) * dy[t][c];
        dw[t][n] = static_cast<T>(sum);
      }
    }
  });
}

template <class T>
void backward(Tape& tape, const ExpertsCall<T>& call) {
  const Context& context = tape.context();
  const Sorted& s = call.sorted;
  const Variable from = call.x, weights = call.weights;
  const ExpertWeights& w = call.experts;
  const Rows<const T> dy = tape.gradient_of<T>(call.y);
  const index C = dy.columns, F = call.h.columns / 2;
  write_or_add<T>(context, tape.gradient_for<T>(weights),
                  [&](Rows<T> dw) { pull_choices<T>(context, call, dy, dw); });
  Scratch scratch;
  const Rows<T> d_out = scratch_rows<T>(scratch, s.count, C),
                x = scratch_rows<T>(scratch, s.count, C), a = scratch_rows<T>(scratch, s.count, F),
                dh = scratch_rows<T>(scratch, s.count, 2 * F);
  gather<T>(context, s, dy, d_out, weights.value<T>());
  gate_rows<T>(context, call.h, a);
  pull_weights<T>(tape, s, d_out, a, w.out, w.out_bias);
  multiply_sorted<T>(context, s, d_out, {w.out.value<T>()}, a);
  pull_gate<T>(context, call.h, a, dh);
  gather<T>(context, s, from.value<T>(), x);
  pull_weights<T>(tape, s, dh, x, w.in, w.in_bias);
  write_or_add<T>(context, tape.gradient_for<T>(from), [&](Rows<T> dx) {
    multiply_sorted<T>(context, s, dh, {w.in.value<T>()}, x);
    add_up<T>(context, s, x, dx);
  });
}

void check_experts(Variable x, const ChosenExperts& chosen, const ExpertWeights& w) {
  const index C = x.columns(), E = w.in_bias.rows(), F = w.in_bias.columns() / 2;
  check_operand("experts", "in", w.in, E * 2 * F, C, x.dtype());
  check_operand("experts", "in_bias", w.in_bias, E, 2 * F, x.dtype());
  check_operand("experts", "out", w.out, E * C, F, x.dtype());
  check_operand("experts", "out_bias", w.out_bias, E, C, x.dtype());
  check_operand("experts", "weights", chosen.weights, x.rows(), chosen.weights.columns(),
                x.dtype());
  check(chosen.ids.size == x.rows() * chosen.weights.columns(), "experts: {} choices for {} rows",
        chosen.ids.size, x.rows());
}

}  // namespace

ChosenExperts choose_experts(Tape& tape, Variable scores, index k) {
  check(k >= 1 && k <= scores.columns(), "experts: {} of {} are to be chosen", k, scores.columns());
  const index N = scores.rows();
  auto* const ids = tape.saved<std::int32_t>(N * k);
  const Variable weights = tape.result(N, k, scores.dtype());
  with_type(scores.dtype(), [&]<class T>(std::type_identity<T>) {
    const Rows<const T> from = scores.value<T>();
    const Rows<T> to = weights.value<T>();
    const double cost = static_cast<double>(k * from.columns);
    tape.context().for_ranges(N, cost, [&](index begin, index end) {
      for (index t = begin; t < end; ++t) {
        highest(from[t], from.columns, k, ids + t * k);
        softmax_of_chosen(from[t], ids + t * k, k, to[t]);
      }
    });
    tape.record(weights, {scores},
                [scores, weights, ids](Tape& t) { pull_choice<T>(t, scores, weights, ids); });
  });
  return {.weights = weights, .ids = {ids, N * k}};
}

Variable experts(Tape& tape, Variable x, const ChosenExperts& chosen,
                 const ExpertWeights& weights) {
  check_experts(x, chosen, weights);
  const index k = chosen.weights.columns();
  const Variable y = tape.result(x.rows(), x.columns(), x.dtype());
  const Sorted sorted = sort_by_expert(tape, chosen.ids, k, weights.in_bias.rows());
  with_type(x.dtype(), [&]<class T>(std::type_identity<T>) {
    const auto inputs = {x,           chosen.weights,  weights.in, weights.in_bias,
                         weights.out, weights.out_bias};
    const bool records = tape.records(inputs);
    Scratch scratch;
    const auto room = [&](index columns) {
      const index size = sorted.count * columns;
      return Rows<T>(records ? tape.saved<T>(size) : scratch.allocate<T>(size), sorted.count,
                     columns);
    };
    const ExpertsCall<T> call{
        x, chosen.weights, y, weights, sorted, room(weights.in_bias.columns()), room(x.columns())};
    forward(tape, call);
    tape.record(y, inputs, [call](Tape& t) { backward<T>(t, call); });
  });
  return y;
}

Experts::Experts(const ExpertsOptions& o, const ParameterScope& scope) : chosen_(o.chosen) {
  check(o.width > 0 && o.hidden > 0 && o.chosen > 0 && o.chosen <= o.experts,
        "experts: sizes must be positive; width is {}, hidden is {}, {} of {} are chosen", o.width,
        o.hidden, o.chosen, o.experts);
  const index E = o.experts;
  const auto bias = [&](const ParameterScope& of, const Shape& shape) {
    return &of.add("bias", shape, Init::zeros(), Decay::kNo);
  };
  router_ = &scope["router"].add("weight", {E, o.width}, o.input_init);
  router_bias_ = bias(scope["router"], {E});
  in_ = &scope["in"].add("weight", {E * 2 * o.hidden, o.width}, o.input_init);
  in_bias_ = bias(scope["in"], {E, 2 * o.hidden});
  out_ = &scope["out"].add("weight", {E * o.width, o.hidden}, o.output_init);
  out_bias_ = bias(scope["out"], {E, o.width});
}

Variable Experts::forward(Tape& tape, Variable x) const {
  const Variable scores = linear(tape, x, tape.parameter(*router_), tape.parameter(*router_bias_));
  return experts(tape, x, choose_experts(tape, scores, chosen_),
                 {.in = tape.parameter(*in_),
                  .in_bias = tape.parameter(*in_bias_),
                  .out = tape.parameter(*out_),
                  .out_bias = tape.parameter(*out_bias_)});
}

}  // namespace fovea
