// SPDX-License-Identifier: Apache-2.0
#include "fovea/nn/attention_rnn.h"

#include <algorithm>
#include <array>
#include <limits>

#include "fovea/attention/mask/band.h"

namespace fovea {

namespace {

AttentionRnnOptions checked(const AttentionRnnOptions& o) {
  check(o.hidden > 0 && o.heads > 0 && o.window >= 0,
        "attention rnn: hidden and heads must be positive, the window not negative; they are {}, "
        "{}, {}",
        o.hidden, o.heads, o.window);
  check(o.hidden % o.heads == 0, "attention rnn: width {} is not divisible by {} heads", o.hidden,
        o.heads);
  return o;
}

// The states that a query keeps. A window of W holds h_t and W - 1 before it, or W before it.
Mask mask_of(const AttentionRnnOptions& o, index window) {
  if (o.defects.history_only) {
    const Mask past = mask::Past();
    return window > 0 ? past & mask::Window(window, kOpen) : past;
  }
  const Mask causal = mask::Causal();
  return window > 0 ? causal & mask::Window(window - 1, kOpen) : causal;
}

// One column of ones a head: with the score q . k and no norm, every weight is 1.
Variable ones(Tape& tape, index rows, index heads, DType dtype) {
  Variable x;
  with_type(dtype, [&]<class T>(std::type_identity<T>) {
    T* const values = tape.saved<T>(rows * heads);
    std::fill_n(values, rows * heads, T{1});
    x = tape.constant(Rows<const T>(values, rows, heads));
  });
  return x;
}

}  // namespace

AttentionRnn::AttentionRnn(const AttentionRnnOptions& options, const ParameterScope& scope)
    : options_(checked(options)),
      recurrent_({.kind = RecurrentKind::kRnn,
                  .in = options.in,
                  .hidden = options.hidden,
                  .weight = options.recurrent},
                 scope),
      mask_(mask_of(options_, options_.window)) {
  const index H = options_.hidden;
  if (options_.heads == 1) return;
  const auto linear = [&](index out) {
    return LinearOptions{.in = H, .out = out, .weight = options_.linear};
  };
  qkv_.emplace(linear(3 * H), scope["qkv"]);
  out_.emplace(linear(H), scope["out"]);
}

AttentionRnn::Projected AttentionRnn::project(Tape& tape, Variable h) const {
  if (!qkv_) return {h, h, h};
  const std::array widths{options_.hidden, options_.hidden, options_.hidden};
  const auto parts = split_columns(tape, qkv_->forward(tape, h), widths);
  return {parts[0], parts[1], parts[2]};
}

Variable AttentionRnn::attend(Tape& tape, const AttentionOperands& operands, const Mask& mask,
                              HeadStatistics* seen) const {
  AttentionOptions options{.heads = options_.heads, .mask = &mask, .statistics = seen};
  AttentionOperands in = operands;
  if (options_.defects.sum_weights) {
    const DType dtype = in.v.dtype();
    in.q = ones(tape, in.q.rows(), options_.heads, dtype);
    in.k = ones(tape, in.k.rows(), options_.heads, dtype);
    options.variant.scale = 1;
    options.variant.norm = AttentionNormKind::kNone;
  }
  const Variable y = attention(tape, in, options);
  return out_ ? out_->forward(tape, y) : y;
}

Variable AttentionRnn::forward(Tape& tape, Variable x, const PackedRows& rows,
                               HeadStatistics* seen) const {
  const Variable h = recurrent_.forward(tape, x, rows, {});
  const auto [q, k, v] = project(tape, h);
  const Variable y = attend(tape, {q, k, v, rows, rows}, mask_, seen);
  return options_.defects.history_only ? replace_first_rows(tape, y, h, rows) : y;
}

class AttentionRnn::Session final : public LayerSession {
 public:
  Session(const AttentionRnn& layer, index window)
      : layer_(layer),
        mask_(mask_of(layer.options_, window)),
        cache_({.capacity = kWithoutEnd,
                .keys = layer.options_.hidden,
                .values = layer.options_.hidden,
                .window = window}) {}

  Variable forward(Tape& tape, Variable x) override {
    const Variable h = layer_.recurrent_.forward(tape, x, state_);
    const auto [q, k, v] = layer_.project(tape, h);
    const bool first = cache_.tokens() == 0;
    cache_.append(k, v);
    Variable y =
        layer_.attend(tape, {q, cache_.keys(tape), cache_.values(tape), {}, {}}, mask_, nullptr);
    const AttentionRnnDefects& defects = layer_.options_.defects;
    if (defects.history_only && first) y = replace_first_rows(tape, y, h, {});
    if (defects.state_is_attention) replace_state(y);
    return y;
  }

  void clear() override {
    state_.clear();
    cache_.clear();
  }

  index most_rows() const override { return KvCache::kMostNewRows; }
  bool endless() const override { return true; }

 private:
  static constexpr index kWithoutEnd = index{1} << 60;

  void replace_state(Variable y) {
    with_type(y.dtype(), [&]<class T>(std::type_identity<T>) {
      const Rows<const T> last = y.value<T>().slice(y.rows() - 1, y.rows());
      std::copy_n(last[0], last.columns, state_[0].hidden.template vec<T>().begin());
    });
  }

  const AttentionRnn& layer_;
  std::vector<RecurrentState> state_;
  Mask mask_;
  KvCache cache_;
};

std::unique_ptr<LayerSession> AttentionRnn::begin(index capacity) const {
  const index window = options_.window > 0 ? std::min(options_.window, capacity) : capacity;
  return std::make_unique<Session>(*this, window);
}

}  // namespace fovea
