// SPDX-License-Identifier: Apache-2.0
// The position-wise network (Vaswani et al. 2017, eq. 2): W2 f(W1 x + b1) + b2. It is two
// convolutions of window 1 (the same paper, section 3.3).
//
// Gated (Shazeer 2020, eq. 6): W2 (f(W x + b) * (W1 x + b1)) + b2, with W in gate.weight. The
// hidden width is that of the options, so a third matrix comes to the two.
#pragma once

#include <memory>
#include <optional>

#include "fovea/nn/encoder.h"
#include "fovea/nn/linear.h"
#include "fovea/nn/options.h"

namespace fovea {

struct FeedForwardOptions {
  index width = 0;
  index hidden = 0;
  LayerActivation activation = LayerActivation::kRelu;
  Biases bias = Biases::kLearned;
  Init input_init = Init::normal(kInitDeviation);   ///< of W1
  Init output_init = Init::normal(kInitDeviation);  ///< of W2, before a residual sum
  BiasStart bias_start = BiasStart::kZeros;
};

/// Parameters: in.weight [F, C], in.bias [F]; if gated gate.weight [F, C], gate.bias [F];
/// out.weight [C, F], out.bias [C].
class FeedForward final : public EncoderLayer {
 public:
  FeedForward(const FeedForwardOptions& options, const ParameterScope& scope);

  index width() const override { return width_; }
  Variable forward(Tape& tape, Variable x, const EncoderCall& call) const override {
    return forward(tape, x, {call.key, call.rows.rows});
  }
  std::unique_ptr<LayerSession> begin(index capacity) const override;

  /// [N, C] -> [N, C].
  Variable forward(Tape& tape, Variable x, const MaskNames& names = {}) const;

 private:
  index width_;
  Activation activation_;
  Linear in_;
  std::optional<Linear> gate_;
  Linear out_;
};

}  // namespace fovea
