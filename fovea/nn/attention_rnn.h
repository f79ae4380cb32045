// SPDX-License-Identifier: Apache-2.0
// A recurrent network whose result is attention over its own states (Hands-on NLP, chapter 6).
//
// h_t is the state of a tanh RNN; the result is
//   o_t = sum over s of softmax_s(q_t . k_s / sqrt(d)) v_s
// over the states up to t, or the last of them. With one head q, k and v are the states; with more
// they are projections of them, each made once, and o is projected again. o does not flow back into
// the recurrence: so all states come first, then one call of the operator.
#pragma once

#include <optional>

#include "fovea/attention/mask/mask.h"
#include "fovea/nn/encoder.h"
#include "fovea/nn/kv_cache.h"
#include "fovea/nn/linear.h"
#include "fovea/nn/recurrent.h"

namespace fovea {

/// The defects of the book's published code, each of which changes what it computes.
struct AttentionRnnDefects {
  /// Every weight is 1, not a softmax: o is the sum of the history. (There, the softmax runs over
  /// an axis of size 1.)
  bool sum_weights = false;
  /// The state itself does not belong to the history. The first result is the first state.
  bool history_only = false;
  /// A call of the layer hands o on to the next call, not h. Only generation sees that,
  /// and what it writes then depends on how its tokens come in calls.
  bool state_is_attention = false;

  friend bool operator==(const AttentionRnnDefects&, const AttentionRnnDefects&) = default;
};

struct AttentionRnnOptions {
  index in = 0;
  index hidden = 0;
  index heads = 1;   ///< it divides `hidden`; 1: attention over the states as they are
  index window = 0;  ///< how many states, h_t included, a query sees; 0: all
  AttentionRnnDefects defects{};
  std::optional<Init> recurrent{};             ///< of the weights of the RNN; none: PyTorch's
  Init linear = Init::normal(kInitDeviation);  ///< of the projections, whose biases start at 0
};

/// Parameters: those of RecurrentLayers; with several heads qkv.weight [3 H, H], qkv.bias,
/// out.weight [H, H], out.bias.
class AttentionRnn final : public EncoderLayer {
 public:
  AttentionRnn(const AttentionRnnOptions& options, const ParameterScope& scope);

  index width() const override { return options_.hidden; }
  index attentions() const override { return 1; }
  Variable forward(Tape& tape, Variable x, const EncoderCall& call) const override {
    return forward(tape, x, call.rows, call.only_seen());
  }
  /// Generation goes on without end: it keeps h and the last `window` states, or `capacity` states.
  std::unique_ptr<LayerSession> begin(index capacity) const override;

  /// x [N, in] -> [N, hidden].
  Variable forward(Tape& tape, Variable x, const PackedRows& rows, HeadStatistics* seen) const;

  const AttentionRnnOptions& options() const { return options_; }

 private:
  class Session;

  struct Projected {
    Variable q, k, v;
  };
  Projected project(Tape& tape, Variable h) const;
  Variable attend(Tape& tape, const AttentionOperands& operands, const Mask& mask,
                  HeadStatistics* seen) const;

  AttentionRnnOptions options_;
  RecurrentLayers recurrent_;
  std::optional<Linear> qkv_, out_;
  Mask mask_;
};

}  // namespace fovea
