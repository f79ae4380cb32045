// SPDX-License-Identifier: Apache-2.0
#include "fovea/attention/attention.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>

#include "fovea/grad/ops.h"
#include "fovea/grad/ops/common.h"
#include "fovea/grad/ops/rounded_rows.h"
#include "fovea/kernel/elementwise.h"
#include "fovea/parts/part_table.h"

namespace fovea {

namespace {

// One call of the operator, in numbers and views, for forward and backward.
struct Call {
  AttentionOperands in;
  AttentionOptions options;
  index G = 0;

  index H() const { return options.heads; }
  index D() const { return in.q.columns() / H(); }
  index Dv() const { return in.v.columns() / G; }
};

// A row holds the heads side by side, so a head is a strided view and is not copied.
template <class T>
View<T> heads_of(Rows<T> x, index heads) {
  const index width = x.columns / heads;
  return {x.data, 1, x.rows, heads, width, x.rows * x.stride, x.stride, width};
}

template <class T>
View<T> heads_of(const GradientOut<T>& x, index heads) {
  return x ? heads_of(x.rows, heads) : View<T>{};
}

template <class T>
AttentionInputs<T> inputs_of(const Call& call) {
  const AttentionOperands& in = call.in;
  return {heads_of<const T>(in.q.value<T>(), call.H()), heads_of<const T>(in.k.value<T>(), call.G),
          heads_of<const T>(in.v.value<T>(), call.G)};
}

// One for each row of the table of parts.
template <class T>
using PartGradients = std::array<GradientOut<T>, kMostAttentionParts>;

template <class T>
Attention<T> attention_of(const Call& call, TapeMode mode, const PartGradients<T>& gradients = {}) {
  const AttentionOptions& options = call.options;
  PartTensors<T> tensors{};
  for (std::size_t n = 0; n < tensors.size(); ++n) {
    const Variable& part = call.in.parts[n];
    if (part.defined()) tensors[n] = {.values = part.value<T>(), .gradient = gradients[n].rows};
  }
  const Mask mask = options.mask != nullptr ? *options.mask : Mask();
  Attention<T> attention = make_attention(options.variant, tensors, mask);
  const PackedRows &queries = call.in.queries, &keys = call.in.keys;
  if (mode == TapeMode::kTrain) {
    const DropoutKey& key = options.dropout.key;
    attention.dropout = {options.dropout.p, key.seed, key.step, key.layer, queries.samples};
  }
  attention.packed = {queries.offsets, keys.offsets};
  return attention;
}

// The rows of a part must be those of the operator, which says what does not fit; but a matrix in
// place of a vector would be read as one.
void check_part(const AttentionPart& part, Variable x, DType dtype) {
  const bool is_vector = part.axes.find(' ') == std::string_view::npos;
  check(!part.tensor.empty() && (!is_vector || x.rows() == 1),
        "attention: {} must be a vector; it is [{}, {}]", part.tensor, x.rows(), x.columns());
  check(x.dtype() == dtype, "attention: {} is {} and q {}; they must be of one type", part.tensor,
        to_string(x.dtype()), to_string(dtype));
}

// The type of sums and of parts: float32 for rows that are rounded.
DType dtype_of_sums(const AttentionOperands& in) {
  return in.q.dtype() == DType::kBFloat16 ? DType::kFloat32 : in.q.dtype();
}

Call checked_call(const AttentionOperands& in, const AttentionOptions& options) {
  const index H = options.heads, G = options.kv_heads > 0 ? options.kv_heads : H;
  check(in.q.defined() && in.k.defined() && in.v.defined(), "attention: q, k or v is missing");
  check(H >= 1 && in.q.columns() % H == 0,
        "attention: q has {} columns, not a multiple of {} heads", in.q.columns(), H);
  check(in.k.columns() % G == 0 && in.v.columns() % G == 0,
        "attention: k has {} and v {} columns; both must be multiples of {} heads", in.k.columns(),
        in.v.columns(), G);
  check(in.k.dtype() == in.q.dtype() && in.v.dtype() == in.q.dtype(),
        "attention: q is {}, k {}, v {}; they must be of one type", to_string(in.q.dtype()),
        to_string(in.k.dtype()), to_string(in.v.dtype()));
  for (std::size_t n = 0; n < attention_parts().size(); ++n) {
    if (in.parts[n].defined()) check_part(attention_parts()[n], in.parts[n], dtype_of_sums(in));
  }
  return {in, options, G};
}

// The operator overwrites its gradients. A gradient that is to be added to is computed in scratch
// memory first.
template <class T>
GradientOut<T> detour(Scratch& scratch, const GradientOut<T>& out) {
  if (!out || out.store == Store::kWrite) return out;
  const index N = out.rows.rows, C = out.rows.columns;
  return {{scratch.allocate<T>(N * C), N, C}, Store::kAdd};
}

template <class T>
void end_detour(const Context& context, const GradientOut<T>& from, const GradientOut<T>& to) {
  if (to && to.store == Store::kAdd) accumulate(context, from.rows, to.rows);
}

template <class T>
void backward(Tape& tape, const Call& call, Variable o, RowView<const T> lse,
              RowView<const T> lse_low) {
  const GradientOut<T> dq = tape.gradient_for<T>(call.in.q), dk = tape.gradient_for<T>(call.in.k),
                       dv = tape.gradient_for<T>(call.in.v);
  Scratch scratch;
  const auto q = detour(scratch, dq), k = detour(scratch, dk), v = detour(scratch, dv);
  PartGradients<T> wanted{}, parts{};
  for (std::size_t n = 0; n < parts.size(); ++n) {
    if (!call.in.parts[n].defined()) continue;
    wanted[n] = tape.gradient_for<T>(call.in.parts[n]);
    parts[n] = detour(scratch, wanted[n]);
  }
  const AttentionSaved<T> saved{heads_of<const T>(o.value<T>(), call.H()), lse,
                                heads_of(tape.gradient_of<T>(o), call.H()), lse_low};
  attention_backward<T>(tape.context(), attention_of<T>(call, tape.mode(), parts),
                        inputs_of<T>(call), saved,
                        {heads_of(q, call.H()), heads_of(k, call.G), heads_of(v, call.G)});
  end_detour(tape.context(), q, dq);
  end_detour(tape.context(), k, dk);
  end_detour(tape.context(), v, dv);
  for (std::size_t n = 0; n < parts.size(); ++n) end_detour(tape.context(), parts[n], wanted[n]);
}

// ---------------------------------------------------------------- rows rounded to bfloat16

View<BFloat16> heads_of_room(Rows<BFloat16> room, index heads) {
  return room.data == nullptr ? View<BFloat16>{} : heads_of(room, heads);
}

bool is_rounded(Variable x) { return x.dtype() == DType::kBFloat16; }

AttentionInputs<BFloat16> rounded_inputs(const RoundedRows& rows, const Call& call) {
  const AttentionOperands& in = call.in;
  const auto views = [&](const ThreeRows<BFloat16>& of) -> AttentionInputs<BFloat16> {
    return {heads_of<const BFloat16>(of[0], call.H()), heads_of<const BFloat16>(of[1], call.G),
            heads_of<const BFloat16>(of[2], call.G)};
  };
  if (is_rounded(in.q)) {
    return views({in.q.value<BFloat16>(), in.k.value<BFloat16>(), in.v.value<BFloat16>()});
  }
  return views(rows.round({in.q.value<float>(), in.k.value<float>(), in.v.value<float>()}));
}

View<const BFloat16> rounded_heads(const RoundedRows& rows, Rows<const float> x, index heads) {
  return heads_of<const BFloat16>(rows.round(x), heads);
}

void rounded_forward(const Context& context, const Call& call, const Attention<float>& attention,
                     Variable o, RowView<float> lse, RowView<float> lse_low) {
  Scratch scratch;
  const RoundedRows rows(context, scratch);
  const Rows<BFloat16> result =
      is_rounded(o) ? o.value<BFloat16>() : rows.room(o.rows(), o.columns());
  attention_forward(context, attention, rounded_inputs(rows, call),
                    AttentionOutputs<BFloat16>{heads_of(result, call.H()), lse, lse_low});
  if (!is_rounded(o)) widen_rows(context, result, o.value<float>());
}

// The gradients of q, k and v: in place, or in rows of `rooms` for floats, to which finish() brings
// them.
class RoundedGradients {
 public:
  RoundedGradients(Tape& tape, const AttentionOperands& in, const RoundedRows& rooms)
      : rooms_(rooms), in_place_(is_rounded(in.q)) {
    const std::array operands{in.q, in.k, in.v};
    for (std::size_t n = 0; n < operands.size(); ++n) {
      if (in_place_) {
        rows_[n] = tape.gradient_for<BFloat16>(operands[n]).rows;
      } else {
        wanted_[n] = tape.gradient_for<float>(operands[n]);
      }
    }
    if (!in_place_) rows_ = rooms.rooms_for(rows_of(wanted_));
  }

  AttentionGradients<BFloat16> views(const Call& call) const {
    return {heads_of_room(rows_[0], call.H()), heads_of_room(rows_[1], call.G),
            heads_of_room(rows_[2], call.G)};
  }
  void finish() const {
    if (!in_place_) rooms_.store(rows_, wanted_);
  }

 private:
  const RoundedRows& rooms_;
  bool in_place_;
  ThreeGradients wanted_;
  ThreeRows<BFloat16> rows_;
};

void rounded_backward(Tape& tape, const Call& call, Variable o, RowView<const float> lse,
                      RowView<const float> lse_low) {
  Scratch scratch;
  const RoundedRows rows(tape.context(), scratch);
  const RoundedGradients gradients(tape, call.in, rows);
  PartGradients<float> wanted{}, parts{};
  for (std::size_t n = 0; n < parts.size(); ++n) {
    if (!call.in.parts[n].defined()) continue;
    wanted[n] = tape.gradient_for<float>(call.in.parts[n]);
    parts[n] = detour(scratch, wanted[n]);
  }
  const index H = call.H();
  const bool in_place = is_rounded(o);
  const AttentionSaved<BFloat16> saved{
      in_place ? heads_of<const BFloat16>(o.value<BFloat16>(), H)
               : rounded_heads(rows, o.value<float>(), H),
      lse,
      in_place ? heads_of<const BFloat16>(tape.gradient_of<BFloat16>(o), H)
               : rounded_heads(rows, tape.gradient_of<float>(o), H),
      lse_low};
  attention_backward(tape.context(), attention_of<float>(call, tape.mode(), parts),
                     rounded_inputs(rows, call), saved, gradients.views(call));
  gradients.finish();
  for (std::size_t n = 0; n < parts.size(); ++n) end_detour(tape.context(), parts[n], wanted[n]);
}

// Whether the call rounds its rows to bfloat16: in training, where they are multiplied as such.
bool rounds(const Tape& tape, const Attention<float>& attention, bool records) {
  return records && tape.context().precision() == Precision::kBFloat16 &&
         multiplies_bfloat16(attention);
}

// Observes a forward: a number for each head and query, which are then summed.
template <class T>
class HeadObservation {
 public:
  HeadObservation(HeadStatistics* to, const Call& call, bool is_softmax)
      : to_(to),
        heads_(call.H()),
        queries_(call.in.q.rows()),
        keys_(call.in.k.rows()),
        is_softmax_(is_softmax) {}

  Observe<T> observers() {
    if (to_ == nullptr) return {};
    max_logit_ = room(queries_);
    Observe<T> observe = observe::Maximum<T>(max_logit_);
    if (to_->sees_keys) {
      received_ = room(keys_);
      observe = observe + observe::ColumnMass<T>(received_);
    }
    if (to_->keeps_weights) {
      weights_ = ScoreView<T>::contiguous(scratch_.allocate<T>(heads_ * queries_ * keys_), 1,
                                          heads_, queries_, keys_);
      observe = observe + observe::SelectedRows<T>(0, queries_, weights_);
    }
    if (!is_softmax_) return observe;
    entropy_ = room(queries_);
    distance_ = room(queries_);
    return observe + observe::Entropy<T>(entropy_) + observe::Distance<T>(distance_);
  }

  void finish() const {
    if (to_ == nullptr) return;
    to_->queries += queries_;
    constexpr double kLowest = -std::numeric_limits<double>::infinity();
    // NaN stays NaN.
    fold(max_logit_, to_->max_logit, kLowest,
         [](double a, double b) { return std::isnan(a) || a >= b ? a : b; });
    if (to_->sees_keys) keep_received();
    if (to_->keeps_weights) {
      to_->weights.assign(weights_.data, weights_.data + heads_ * queries_ * keys_);
    }
    if (!is_softmax_) return;
    fold(entropy_, to_->entropy, 0, std::plus());
    fold(distance_, to_->distance, 0, std::plus());
  }

 private:
  RowView<T> room(index rows) {
    return RowView<T>::contiguous(scratch_.allocate<T>(heads_ * rows), 1, heads_, rows);
  }

  void keep_received() const {
    to_->received.clear();
    for (index h = 0; h < heads_; ++h) {
      for (index m = 0; m < keys_; ++m) to_->received.push_back(double{received_.at(0, h, m)});
    }
  }

  template <class Combine>
  void fold(RowView<T> of, std::vector<double>& into, double start, const Combine& combine) const {
    into.resize(static_cast<std::size_t>(heads_), start);
    for (index h = 0; h < heads_; ++h) {
      double& value = into[static_cast<std::size_t>(h)];
      for (index n = 0; n < queries_; ++n) value = combine(value, double{of.at(0, h, n)});
    }
  }

  Scratch scratch_;
  HeadStatistics* to_;
  index heads_, queries_, keys_;
  bool is_softmax_;
  RowView<T> entropy_, max_logit_, distance_, received_;
  ScoreView<T> weights_;
};

// q, k, v and the tensors of parts.
std::array<Variable, 3 + kMostAttentionParts> operands_of(const AttentionOperands& in) {
  std::array<Variable, 3 + kMostAttentionParts> all{in.q, in.k, in.v};
  std::copy(in.parts.begin(), in.parts.end(), all.begin() + 3);
  return all;
}

}  // namespace

Variable attention(Tape& tape, const AttentionOperands& in, const AttentionOptions& options) {
  const Call call = checked_call(in, options);
  const auto operands = operands_of(in);
  const index N = in.q.rows(), H = call.H();
  const bool for_product = is_rounded(in.q) && options.reader == ForReader::kProduct;
  const DType dtype = dtype_of_sums(in);
  const Variable o = tape.result(N, H * call.Dv(), for_product ? DType::kBFloat16 : dtype);
  const bool is_softmax = options.variant.norm == AttentionNormKind::kSoftmax;
  with_type(dtype, [&]<class T>(std::type_identity<T>) {
    RowView<T> lse, lse_low;
    if (tape.records(operands) && is_softmax) {
      lse = RowView<T>::contiguous(tape.saved<T>(H * N), 1, H, N);
      lse_low = RowView<T>::contiguous(tape.saved<T>(H * N), 1, H, N);
    }
    HeadObservation<T> observation(options.statistics, call, is_softmax);
    Attention<T> forward = attention_of<T>(call, tape.mode());
    // An observer sees single scores, so without a norm the call would take other sums than those
    // of linear attention. There it is observed in a call of its own.
    const bool apart = options.variant.norm == AttentionNormKind::kNone;
    const Observe<T> observers = observation.observers();
    if (!apart) forward.observe = observers;
    if constexpr (std::is_same_v<T, float>) {
      if (!apart && rounds(tape, forward, tape.records(operands))) {
        rounded_forward(tape.context(), call, forward, o, lse, lse_low);
        observation.finish();
        tape.record(o, operands, [=](Tape& t) { rounded_backward(t, call, o, lse, lse_low); });
        return;
      }
    }
    const AttentionInputs<T> inputs = inputs_of<T>(call);
    attention_forward<T>(tape.context(), forward, inputs,
                         {heads_of(o.value<T>(), H), lse, lse_low});
    if (apart && options.statistics != nullptr) {
      Scratch scratch;
      const Rows<T> unused(scratch.allocate<T>(N * o.columns()), N, o.columns());
      forward.observe = observers;
      attention_forward<T>(tape.context(), forward, inputs, {heads_of(unused, H)});
    }
    observation.finish();
    tape.record(o, operands, [=](Tape& t) { backward<T>(t, call, o, lse, lse_low); });
  });
  return o;
}

bool reads_rounded(const AttentionVariant& variant) {
  return variant.score == AttentionScoreKind::kDot && variant.norm != AttentionNormKind::kNone;
}

}  // namespace fovea
