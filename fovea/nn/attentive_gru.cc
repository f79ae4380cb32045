// SPDX-License-Identifier: Apache-2.0
#include "fovea/nn/attentive_gru.h"

#include <algorithm>
#include <array>
#include <numeric>

namespace fovea {

namespace {

constexpr index kGates = 3;

LinearOptions linear_options(const AttentiveGruOptions& o, index in, index out, index fan,
                             Biases bias) {
  return {.in = in,
          .out = out,
          .bias = bias == Biases::kNone ? bias : o.bias,
          .weight = linear_uniform_init(fan)};
}

// Rows of x, in memory of their own.
Variable rows_of(Tape& tape, Variable x, const std::vector<std::int32_t>& ids) {
  const auto n = static_cast<index>(ids.size());
  auto* const kept = tape.saved<std::int32_t>(n);
  std::copy(ids.begin(), ids.end(), kept);
  return embedding(tape, {.table = x, .ids = {kept, n}});
}

// The sentences that are not over at a step: which rows of the state before are theirs, and which
// rows of the target they read.
struct Alive {
  std::vector<std::int32_t> sentences, states, rows;
  bool all = true;  // none of those before is over
};

Alive alive_at(index t, const std::vector<std::int32_t>& before, Vec<const std::int32_t> offsets) {
  Alive alive;
  for (std::size_t n = 0; n < before.size(); ++n) {
    const std::int32_t s = before[n];
    if (offsets[s] + t >= offsets[s + 1]) continue;
    alive.sentences.push_back(s);
    alive.states.push_back(static_cast<std::int32_t>(n));
    alive.rows.push_back(offsets[s] + static_cast<std::int32_t>(t));
  }
  alive.all = alive.sentences.size() == before.size();
  return alive;
}

// One query for each sentence that is not over, none for the others.
PackedRows queries_of(Tape& tape, const Alive& alive, index sentences, index t) {
  const auto n = static_cast<index>(alive.rows.size());
  auto* const offsets = tape.saved<std::int32_t>(sentences + 1);
  std::fill_n(offsets, sentences + 1, 0);
  for (const std::int32_t s : alive.sentences) offsets[s + 1] = 1;
  std::partial_sum(offsets, offsets + sentences + 1, offsets);
  auto* const positions = tape.saved<std::int32_t>(n);
  std::fill_n(positions, n, static_cast<std::int32_t>(t));
  PackedRows rows;
  rows.offsets = {offsets, sentences + 1};
  rows.positions = {positions, n};
  return rows;
}

// Adds what a step has seen; the operator saw its queries alone.
void add_step(HeadStatistics& all, const HeadStatistics& step, const Alive& alive, index rows) {
  const auto add = [](std::vector<double>& sums, const std::vector<double>& more) {
    sums.resize(more.size());
    for (std::size_t n = 0; n < more.size(); ++n) sums[n] += more[n];
  };
  all.queries += step.queries;
  add(all.entropy, step.entropy);
  add(all.distance, step.distance);
  add(all.received, step.received);
  if (all.max_logit.empty()) all.max_logit = step.max_logit;
  for (std::size_t h = 0; h < step.max_logit.size(); ++h) {
    const double seen = step.max_logit[h];
    if (!(seen <= all.max_logit[h])) all.max_logit[h] = seen;
  }
  if (step.weights.empty()) return;
  const std::size_t M = step.weights.size() / alive.rows.size();
  all.weights.resize(static_cast<std::size_t>(rows) * M);
  for (std::size_t n = 0; n < alive.rows.size(); ++n) {
    std::copy_n(step.weights.begin() + static_cast<std::ptrdiff_t>(n * M), M,
                all.weights.begin() +
                    static_cast<std::ptrdiff_t>(alive.rows[n]) * static_cast<std::ptrdiff_t>(M));
  }
}

// GRU, with sigma(x) = (1 + tanh(x / 2)) / 2: `in` [n, 3 H] and `hid` [n, 3 H] are the sums of
// inputs and of the state before.
Variable cell(Tape& tape, Variable in, Variable hid, Variable state) {
  const index H = state.columns();
  const std::array<index, 2> parts = {2 * H, H}, halves = {H, H};
  const auto from_in = split_columns(tape, in, parts), from_state = split_columns(tape, hid, parts);
  const Variable gates =
      activation(tape, Activation::kTanh, scale(tape, add(tape, from_in[0], from_state[0]), 0.5));
  const auto rz = split_columns(tape, gates, halves);
  const Variable n_sum = from_state[1];
  const Variable reset = scale(tape, add(tape, n_sum, multiply(tape, rz[0], n_sum)), 0.5);
  const Variable n = activation(tape, Activation::kTanh, add(tape, from_in[1], reset));
  const Variable kept = multiply(tape, rz[1], add(tape, state, scale(tape, n, -1)));
  return scale(tape, add(tape, add(tape, state, n), kept), 0.5);
}

}  // namespace

AttentiveGru::AttentiveGru(const AttentiveGruOptions& o, const ParameterScope& scope)
    : options_(o),
      start_(linear_options(o, o.source, o.hidden, o.source, o.bias), scope["start"]),
      query_(linear_options(o, o.hidden, o.hidden, o.hidden, Biases::kNone), scope["query"]),
      key_(linear_options(o, o.source, o.hidden, o.source, o.bias), scope["key"]),
      score_(&scope.add("score_v", {1, o.hidden}, linear_uniform_init(o.hidden))),
      input_(linear_options(o, o.in, kGates * o.hidden, o.hidden, o.bias), scope["input"]),
      context_(linear_options(o, o.source, kGates * o.hidden, o.hidden, Biases::kNone),
               scope["context"]),
      hidden_(linear_options(o, o.hidden, kGates * o.hidden, o.hidden, o.bias), scope["hidden"]),
      out_(linear_options(o, o.hidden + o.source + o.in, o.out, o.hidden + o.source + o.in, o.bias),
           scope["out"]) {}

AttentiveGru::Source AttentiveGru::read(Tape& tape, Variable rows,
                                        const PackedRows& sentences) const {
  return {key_.forward(tape, rows), rows, sentences};
}

Variable AttentiveGru::start(Tape& tape, const Source& source) const {
  return start_.forward(tape, first_over_time(tape, source.rows, source.sentences),
                        Activation::kTanh);
}

AttentiveGru::Moved AttentiveGru::move(Tape& tape, Variable gates, Variable state,
                                       const Source& source, const PackedRows& rows,
                                       HeadStatistics* seen) const {
  static const std::size_t kScore = part_number("score_v");
  AttentionOperands operands{.q = query_.forward(tape, state),
                             .k = source.keys,
                             .v = source.rows,
                             .queries = rows,
                             .keys = source.sentences};
  operands.parts[kScore] = tape.parameter(*score_);
  AttentionOptions options;
  options.variant.score = AttentionScoreKind::kAdditive;
  options.statistics = seen;
  const Variable context = attention(tape, operands, options);
  const Variable in = add(tape, gates, context_.forward(tape, context));
  return {cell(tape, in, hidden_.forward(tape, state), state), context};
}

Variable AttentiveGru::output(Tape& tape, Variable state, Variable context, Variable y) const {
  const std::array<Variable, 3> parts = {state, context, y};
  return out_.forward(tape, concat_columns(tape, parts), Activation::kTanh);
}

AttentiveGru::Step AttentiveGru::step(Tape& tape, Variable y, Variable state, const Source& source,
                                      const PackedRows& rows) const {
  const Moved moved = move(tape, input_.forward(tape, y), state, source, rows, nullptr);
  return {moved.state, output(tape, moved.state, moved.context, y)};
}

Variable AttentiveGru::forward(Tape& tape, Variable y, const PackedRows& rows, const Source& source,
                               HeadStatistics* seen) const {
  const Vec<const std::int32_t> offsets = offsets_of(tape, "attentive GRU", rows, y.rows());
  const index S = offsets.size - 1;
  check(S == source.sentences.count(), "attentive GRU: {} targets for {} sentences of the source",
        S, source.sentences.count());
  const Variable gates = input_.forward(tape, y);
  Variable state = start(tape, source);
  std::vector<std::int32_t> before(static_cast<std::size_t>(S)),
      places(static_cast<std::size_t>(y.rows()));
  std::iota(before.begin(), before.end(), 0);
  std::vector<Variable> states, contexts;
  std::int32_t done = 0;
  for (index t = 0; done < y.rows(); ++t) {
    const Alive alive = alive_at(t, before, offsets);
    if (!alive.all) state = rows_of(tape, state, alive.states);
    HeadStatistics step;
    if (seen != nullptr) {
      step.sees_keys = seen->sees_keys;
      step.keeps_weights = seen->keeps_weights;
    }
    const Moved moved = move(tape, rows_of(tape, gates, alive.rows), state, source,
                             queries_of(tape, alive, S, t), seen == nullptr ? nullptr : &step);
    if (seen != nullptr) add_step(*seen, step, alive, y.rows());
    state = moved.state;
    states.push_back(moved.state);
    contexts.push_back(moved.context);
    for (const std::int32_t row : alive.rows) places[static_cast<std::size_t>(row)] = done++;
    before = alive.sentences;
  }
  if (states.empty()) return tape.result(0, options_.out, y.dtype());
  return output(tape, rows_of(tape, stack_rows(tape, states), places),
                rows_of(tape, stack_rows(tape, contexts), places), y);
}

}  // namespace fovea
