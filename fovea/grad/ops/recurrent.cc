// SPDX-License-Identifier: Apache-2.0
#include "fovea/kernel/recurrent.h"

#include <algorithm>
#include <array>

#include "fovea/grad/ops.h"
#include "fovea/grad/ops/common.h"
#include "fovea/grad/ops/weight_panels.h"
#include "fovea/kernel/sru.h"

namespace fovea {

namespace {

constexpr std::size_t kMostDirections = 2;

// Room for rows that do not fall into a few sets of the caches: they are an odd number of cache
// lines apart. With the gates of 512 columns 8 KB apart, the gradients of the weights took a tenth
// longer.
template <class T, class Allocate>
Rows<T> spread_rows(index rows, index columns, Allocate&& allocate) {
  constexpr index kLine = kAlignment / sizeof(T);
  const index stride = ((columns + kLine - 1) / kLine | 1) * kLine;
  return {allocate(rows * stride), rows, columns, stride};
}

// The memory that a direction keeps for backward.
template <class T>
struct Kept {
  Rows<T> gates, cells, cell_tanh;
};

// One call of the op, for forward and backward.
template <class T>
struct Layer {
  RecurrentKind kind;
  Variable x, y;
  std::size_t directions;
  std::array<RecurrentWeights, kMostDirections> weights;
  Vec<const std::int32_t> offsets;
  std::array<Kept<T>, kMostDirections> kept;

  index N() const { return x.rows(); }
  index H() const { return y.columns() / static_cast<index>(directions); }
  bool is_sru() const { return kind == RecurrentKind::kSru; }
  /// The rows of W_ih, and the first columns of gates, which its product makes.
  index input_gates() const { return weights[0].weight_ih.rows(); }
  TimeDirection direction(std::size_t d) const {
    return d == 0 ? TimeDirection::kForward : TimeDirection::kReverse;
  }
  /// The columns of a direction in y or its gradient.
  template <class U>
  Rows<U> columns(Rows<U> rows, std::size_t d) const {
    const index begin = static_cast<index>(d) * H();
    return rows.columns_slice(begin, begin + H());
  }

  RecurrentRun<T> run(std::size_t d) const {
    return {.kind = kind,
            .direction = direction(d),
            .offsets = offsets,
            .weight = weights[d].weight_hh.template value<T>(),
            .bias_hn = weights[d].bias_hn.template vec<T>(),
            .gates = kept[d].gates,
            .hidden = columns(y.value<T>(), d),
            .cells = kept[d].cells,
            .cell_tanh = kept[d].cell_tanh};
  }
  SruRun<T> sru(std::size_t d) const {
    return {.direction = direction(d),
            .offsets = offsets,
            .vectors = weights[d].weight_hh.template value<T>(),
            .bias = weights[d].bias.template vec<T>(),
            .gates = kept[d].gates,
            .highway = x.columns() == H() ? Rows<const T>(x.value<T>()) : Rows<const T>(),
            .cells = kept[d].cells,
            .hidden = columns(y.value<T>(), d)};
  }
};

// ------------------------------------------------------------------------------------- forward

// W_hh as a step reads it, in every precision as it is. A parameter keeps it until it changes.
template <class T>
struct StepWeight {
  StepWeight() = default;
  StepWeight(const StepWeight&) = delete;

  void pack_gates(const Tape& tape, RecurrentKind kind, Variable weight) {
    if (Parameter* const p = weight.parameter(); p != nullptr) {
      gates = &p->packed.template gates<T>(tape.context(), weight.value<T>(), kind, p->version);
    } else {
      own_gates.pack(tape.context(), kind, weight.value<T>());
      gates = &own_gates;
    }
  }
  void pack_panels(const Tape& tape, Variable weight) {
    const Context context = tape.context().with(Precision::kFloat32);
    if (Parameter* const p = weight.parameter(); p != nullptr) {
      panels =
          p->packed.template get<T>(context, weight.value<T>(), Form::kPlain, p->version).panels();
    } else {
      own_panels.pack(context, weight.value<T>());
      panels = own_panels.panels();
    }
  }

  const PackedGates<T>* gates = nullptr;
  Panels<T> panels;
  PackedGates<T> own_gates;
  PackedMatrix<T> own_panels;
};

template <class T>
Rows<const T> state_rows(const Tensor& state) {
  return state.defined() ? state.rows<T>() : Rows<const T>();
}

template <class T>
void run_forward(const Tape& tape, const Layer<T>& layer, const RecurrentState* state) {
  const Context& context = tape.context();
  for (std::size_t d = 0; d < layer.directions; ++d) {
    const RecurrentWeights& w = layer.weights[d];
    const WeightPanels<T> panels(tape, w.weight_ih, Form::kTransposed, layer.N());
    const Vec<const T> bias = layer.is_sru() ? Vec<const T>() : w.bias.template vec<T>();
    matmul(context, layer.x.template value<T>(), panels.panels,
           layer.kept[d].gates.columns_slice(0, layer.input_gates()), {.bias = bias});
    if (!layer.is_sru()) continue;
    SruRun<T> run = layer.sru(d);
    if (state != nullptr) run.first_cell = state_rows<T>(state->cell);
    sru_forward(context, run);
  }
  if (layer.is_sru()) return;
  std::array<StepWeight<T>, kMostDirections> weights;
  std::array<RecurrentRun<T>, kMostDirections> runs;
  std::array<const PackedGates<T>*, kMostDirections> packed{};
  for (std::size_t d = 0; d < layer.directions; ++d) {
    weights[d].pack_gates(tape, layer.kind, layer.weights[d].weight_hh);
    packed[d] = weights[d].gates;
    runs[d] = layer.run(d);
    if (state == nullptr) continue;
    runs[d].first_hidden = state_rows<T>(state->hidden);
    runs[d].first_cell = state_rows<T>(state->cell);
  }
  recurrent_forward<T>(context, {runs.data(), layer.directions}, {packed.data(), layer.directions});
}

// The rows after each sequence's last. A state of its own: copies of a tensor share memory.
template <class T>
Tensor last_rows(Vec<const std::int32_t> offsets, Rows<const T> rows, const Tensor& before) {
  const index S = offsets.size - 1;
  Tensor state({S, rows.columns}, kDTypeOf<T>);
  const Rows<T> to = state.rows<T>();
  for (index s = 0; s < S; ++s) {
    const bool is_empty = offsets[s] == offsets[s + 1];
    if (is_empty && !before.defined()) continue;
    const T* const from = is_empty ? before.rows<T>()[s] : rows[offsets[s + 1] - 1];
    std::copy_n(from, rows.columns, to[s]);
  }
  return state;
}

template <class T>
void keep_state(const Layer<T>& layer, RecurrentState& state) {
  if (!layer.is_sru()) {
    state.hidden = last_rows<T>(layer.offsets, layer.y.template value<T>(), state.hidden);
  }
  if (layer.is_sru() || layer.kind == RecurrentKind::kLstm) {
    state.cell = last_rows<T>(layer.offsets, layer.kept[0].cells, state.cell);
  }
}

// ------------------------------------------------------------------------------------ backward

// The gradients of the weights of a direction whose gates have theirs.
template <class T>
void backward_of_weights(Tape& tape, const Layer<T>& layer, std::size_t d) {
  const Context& context = tape.context();
  const RecurrentWeights& w = layer.weights[d];
  const index H = layer.H();
  const Rows<T> gates = layer.kept[d].gates;
  const bool is_gru = layer.kind == RecurrentKind::kGru;
  if (const auto dw = tape.gradient_for<T>(layer.is_sru() ? Variable() : w.weight_hh)) {
    Scratch scratch;
    const Rows<T> previous =
        spread_rows<T>(layer.N(), H, [&](index n) { return scratch.allocate<T>(n); });
    previous_rows(context, layer.run(d), previous);
    const index first = is_gru ? 2 * H : dw.rows.rows;
    matmul_at_b(context, gates.columns_slice(0, first), previous, dw.rows.slice(0, first),
                dw.store);
    if (is_gru) {
      matmul_at_b(context, gates.columns_slice(3 * H, 4 * H), previous, dw.rows.slice(first, 3 * H),
                  dw.store);
    }
  }
  if (const auto db = tape.gradient_for<T>(w.bias)) {
    const index begin = layer.is_sru() ? H : 0;
    column_sums(context, gates.columns_slice(begin, begin + db.vec().size), db.vec(), db.store);
  }
  if (const auto db = tape.gradient_for<T>(w.bias_hn)) {
    column_sums(context, gates.columns_slice(3 * H, 4 * H), db.vec(), db.store);
  }
}

// dW_ih, and dx: what the direction adds to it.
template <class T>
void backward_of_input(Tape& tape, const Layer<T>& layer, std::size_t d, const GradientOut<T>& dx) {
  const Context& context = tape.context();
  const Variable weight = layer.weights[d].weight_ih;
  const Rows<T> dgates = layer.kept[d].gates.columns_slice(0, layer.input_gates());
  const Rows<const T> x = layer.x.template value<T>();
  const auto dw = tape.gradient_for<T>(weight);
  if (!dx) {
    if (dw) matmul_at_b(context, dgates, x, dw.rows, dw.store);
    return;
  }
  const WeightPanels<T> panels(tape, weight, Form::kPlain, layer.N());
  // x may be the weight itself: then the second product must add to the result of the first.
  if (dw && dw.rows.data != dx.rows.data) {
    run_together<T>(context, {context, dgates, panels.panels, dx.rows, {.store = dx.store}},
                    {context, dgates, x, dw.rows, dw.store});
    return;
  }
  matmul(context, dgates, panels.panels, dx.rows, {.store = dx.store});
  if (dw) matmul_at_b(context, dgates, x, dw.rows, dw.store);
}

template <class T>
void backward_through_time(Tape& tape, const Layer<T>& layer) {
  std::array<StepWeight<T>, kMostDirections> weights;
  std::array<RecurrentGradient<T>, kMostDirections> gradients;
  for (std::size_t d = 0; d < layer.directions; ++d) {
    weights[d].pack_panels(tape, layer.weights[d].weight_hh);
    gradients[d] = {layer.run(d), weights[d].panels,
                    layer.columns(tape.gradient_of<T>(layer.y), d)};
  }
  recurrent_backward<T>(tape.context(), {gradients.data(), layer.directions});
}

// The highway adds to dx before the product does; returns what the product does then.
template <class T>
GradientOut<T> backward_of_scan(Tape& tape, const Layer<T>& layer, std::size_t d,
                                GradientOut<T> dx) {
  Scratch scratch;
  SruGradient<T> gradient{.run = layer.sru(d),
                          .dy = layer.columns(tape.gradient_of<T>(layer.y), d),
                          .dvectors = {scratch.allocate<T>(2 * layer.H()), 2, layer.H()}};
  if (gradient.run.highway.columns != 0 && dx) {
    gradient.dhighway = dx.rows;
    gradient.store_dhighway = std::exchange(dx.store, Store::kAdd);
  }
  sru_backward(tape.context(), gradient);
  if (const auto dv = tape.gradient_for<T>(layer.weights[d].weight_hh)) {
    pass_on<T>(tape.context(), gradient.dvectors, dv);
  }
  return dx;
}

template <class T>
void backward(Tape& tape, const Layer<T>& layer) {
  if (!layer.is_sru()) backward_through_time(tape, layer);
  GradientOut<T> dx = tape.gradient_for<T>(layer.x);
  for (std::size_t d = 0; d < layer.directions; ++d) {
    if (layer.is_sru()) dx = backward_of_scan(tape, layer, d, dx);
    backward_of_input(tape, layer, d, dx);
    backward_of_weights(tape, layer, d);
    dx.store = Store::kAdd;
  }
}

// -------------------------------------------------------------------------------------- checks

void check_weights(RecurrentKind kind, Variable x, index H, const RecurrentWeights& w) {
  const DType dtype = x.dtype();
  const bool is_sru = kind == RecurrentKind::kSru, is_gru = kind == RecurrentKind::kGru;
  const index gates = input_blocks(kind, x.columns(), H);
  check_operand("recurrent", "weight_ih", w.weight_ih, gates * H, x.columns(), dtype);
  check_operand("recurrent", "weight_hh", w.weight_hh, is_sru ? 2 : gates * H, H, dtype);
  check_vector("recurrent", "bias", w.bias, (is_sru ? 2 : gates) * H, dtype);
  check_vector("recurrent", "bias_hn", w.bias_hn, H, dtype);
  check(is_gru || !w.bias_hn.defined(), "recurrent: bias_hn is of the GRU alone");
}

void check_state(const Tape& tape, const RecurrentState& state, index sequences, index hidden) {
  check(tape.mode() == TapeMode::kInference,
        "recurrent: a state is carried in inference only; no gradient flows into it");
  for (const Tensor* tensor : {&state.hidden, &state.cell}) {
    check(!tensor->defined() || tensor->shape() == Shape({sequences, hidden}),
          "recurrent: the state must be [{}, {}]; it is {}", sequences, hidden, tensor->describe());
  }
}

void check_call(Variable x, std::span<const RecurrentWeights> directions,
                const RecurrentOptions& options) {
  check(!directions.empty() && directions.size() <= kMostDirections,
        "recurrent: there are 1 or 2 directions; got {}", directions.size());
  check(options.state == nullptr || directions.size() == 1,
        "recurrent: only the forward direction has a state to go on from");
  check(x.defined() && directions[0].weight_hh.defined(), "recurrent: x or weight_hh is missing");
  for (const RecurrentWeights& w : directions) {
    check_weights(options.kind, x, directions[0].weight_hh.columns(), w);
  }
}

template <class T, class Allocate>
Kept<T> room_for(const Layer<T>& layer, Allocate&& allocate) {
  const index N = layer.N(), H = layer.H();
  const bool is_lstm = layer.kind == RecurrentKind::kLstm;
  const index gates = gate_blocks(layer.kind, layer.x.columns(), H) * H;
  const auto rows = [&](index columns) { return spread_rows<T>(N, columns, allocate); };
  return {.gates = rows(gates),
          .cells = is_lstm || layer.is_sru() ? rows(H) : Rows<T>(),
          .cell_tanh = is_lstm ? rows(H) : Rows<T>()};
}

}  // namespace

Variable recurrent(Tape& tape, Variable x, std::span<const RecurrentWeights> directions,
                   const PackedRows& rows, const RecurrentOptions& options) {
  check_call(x, directions, options);
  const index H = directions[0].weight_hh.columns(), N = x.rows();
  const Variable y = tape.result(N, H * std::ssize(directions), x.dtype());
  const Vec<const std::int32_t> offsets = offsets_of(tape, "recurrent", rows, N);
  if (options.state != nullptr) check_state(tape, *options.state, offsets.size - 1, H);
  std::array<Variable, 1 + 4 * kMostDirections> operands{x};
  with_type(x.dtype(), [&]<class T>(std::type_identity<T>) {
    Layer<T> layer{options.kind, x, y, directions.size(), {}, offsets, {}};
    std::copy(directions.begin(), directions.end(), layer.weights.begin());
    std::size_t count = 1;
    for (const RecurrentWeights& w : directions) {
      for (const Variable v : {w.weight_ih, w.weight_hh, w.bias, w.bias_hn}) operands[count++] = v;
    }
    Scratch scratch;
    const bool records = tape.records(operands);
    for (std::size_t d = 0; d < directions.size(); ++d) {
      layer.kept[d] = room_for(
          layer, [&](index n) { return records ? tape.saved<T>(n) : scratch.allocate<T>(n); });
    }
    run_forward(tape, layer, options.state);
    if (options.state != nullptr) keep_state(layer, *options.state);
    tape.record(y, operands, [layer](Tape& t) { backward(t, layer); });
  });
  return y;
}

}  // namespace fovea
