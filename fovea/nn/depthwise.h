// SPDX-License-Identifier: Apache-2.0
// Depthwise causal convolution over time: each column by itself, from a few tokens back. Conformer
// (Gulati et al. 2020, section 2.2) and the Canon layers of Allen-Zhu 2025 mix neighbours so before
// or between layers of attention.
#pragma once

#include "fovea/nn/encoder.h"
#include "fovea/nn/module.h"

namespace fovea {

/// y_t = bias + sum over j of w_j * x_(t - (width - 1) + j) of each sequence, element by element,
/// x = 0 before its first row: x [N, C], weight [width, C], bias [C] (optional) -> [N, C]. With a
/// state, in inference, x continues the one sequence that the state has seen, with the bits of one
/// call.
Variable depthwise_convolution(Tape& tape, Variable x, Variable weight, Variable bias,
                               const PackedRows& rows, ConvolutionState* state = nullptr);

struct DepthwiseConvolutionOptions {
  index columns = 0;
  index width = 4;  ///< in tokens: of the token itself and those before it
  Biases bias = Biases::kLearned;
};

/// Parameters: weight [width, C], which starts as PyTorch's Conv1d with groups = C, whose weight
/// [C, 1, width] is this one transposed; bias [C], from zero.
class DepthwiseConvolution final : public EncoderLayer {
 public:
  DepthwiseConvolution(const DepthwiseConvolutionOptions& options, const ParameterScope& scope);

  index width() const override { return options_.columns; }
  Variable forward(Tape& tape, Variable x, const EncoderCall& call) const override;
  /// The next rows of one sequence.
  Variable forward(Tape& tape, Variable x, ConvolutionState& state) const;
  std::unique_ptr<LayerSession> begin(index capacity) const override;

 private:
  DepthwiseConvolutionOptions options_;
  Parameter* weight_;
  Parameter* bias_ = nullptr;
};

}  // namespace fovea
