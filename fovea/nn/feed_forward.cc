// SPDX-License-Identifier: Apache-2.0
#include "fovea/nn/feed_forward.h"

namespace fovea {

FeedForward::FeedForward(const FeedForwardOptions& o, const ParameterScope& scope)
    : activation_(function_of(o.activation)),
      in_({.in = o.width,
           .out = o.hidden,
           .bias = o.bias,
           .weight = o.input_init,
           .bias_start = o.bias_start},
          scope["in"]),
      out_({.in = o.hidden,
            .out = o.width,
            .bias = o.bias,
            .weight = o.output_init,
            .bias_start = o.bias_start},
           scope["out"]) {}

Variable FeedForward::forward(Tape& tape, Variable x) const {
  return out_.forward(tape, in_.forward(tape, x, activation_, ForReader::kProduct));
}

}  // namespace fovea
