// SPDX-License-Identifier: Apache-2.0
#include "fovea/nn/feed_forward.h"

namespace fovea {

namespace {

LinearOptions hidden_options(const FeedForwardOptions& o) {
  return {.in = o.width,
          .out = o.hidden,
          .bias = o.bias,
          .weight = o.input_init,
          .bias_start = o.bias_start};
}

std::optional<Linear> gate(const FeedForwardOptions& o, const ParameterScope& scope) {
  if (!is_gated(o.activation)) return std::nullopt;
  return Linear(hidden_options(o), scope["gate"]);
}

}  // namespace

FeedForward::FeedForward(const FeedForwardOptions& o, const ParameterScope& scope)
    : width_(o.width),
      activation_(function_of(o.activation)),
      in_(hidden_options(o), scope["in"]),
      gate_(gate(o, scope)),
      out_({.in = o.hidden,
            .out = o.width,
            .bias = o.bias,
            .weight = o.output_init,
            .bias_start = o.bias_start},
           scope["out"]) {}

std::unique_ptr<LayerSession> FeedForward::begin(index) const {
  return std::make_unique<RowSession<FeedForward>>(*this);
}

Variable FeedForward::forward(Tape& tape, Variable x, const MaskNames& names) const {
  if (!gate_) {
    const Variable hidden = in_.forward(
        tape, x, {.activation = activation_, .reader = ForReader::kProduct, .names = names});
    return out_.forward(tape, hidden, {.names = names});
  }
  const Variable gates = gate_->forward(tape, x, {.activation = activation_, .names = names});
  const Variable hidden = multiply(tape, gates, in_.forward(tape, x, {.names = names}));
  return out_.forward(tape, hidden, {.names = names});
}

}  // namespace fovea
