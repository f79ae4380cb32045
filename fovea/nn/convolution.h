// SPDX-License-Identifier: Apache-2.0
// Convolutions over time: one layer, gated (Dauphin et al. 2017, eq. 1) or not, and TextCNN's
// several windows with their maximum over time (Kim 2014, section 2).
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "fovea/grad/ops.h"
#include "fovea/nn/encoder.h"
#include "fovea/nn/module.h"

namespace fovea {

struct ConvolutionLayerOptions {
  index in = 0;
  index out = 0;
  index width = 3;
  Padding padding = Padding::kSame;
  index dilation = 1;
  Activation activation = Activation::kNone;  ///< only without gates
  bool gated = false;  ///< the layer computes gates as well, and multiplies by their sigmoid
  Biases bias = Biases::kLearned;
  /// None: linear_uniform_init(width in), as PyTorch's Conv1d.
  std::optional<Init> weight = {};
};

/// f(convolution(x)), or gated a * sigmoid(b), [a, b] = convolution(x): the layer of ConvS2S
/// (Gehring et al. 2017, section 3.2).
///
/// Parameters: weight [out, width, in], bias [out] (starts at zero); gated 2 out instead of out,
/// values first. As PyTorch's Conv1d has weight [out, in, width], transpose its last two axes.
class ConvolutionLayer final : public EncoderLayer {
 public:
  ConvolutionLayer(const ConvolutionLayerOptions& options, const ParameterScope& scope);

  index width() const override { return options_.out; }
  Variable forward(Tape& tape, Variable x, const EncoderCall& call) const override {
    return forward(tape, x, call.rows);
  }
  std::unique_ptr<LayerSession> begin(index capacity) const override;

  /// x [N, in] -> [N, out].
  Variable forward(Tape& tape, Variable x, const PackedRows& rows) const;
  /// The next rows of one sequence, in inference, with kCausal: the same bits as all rows at once.
  Variable forward(Tape& tape, Variable x, ConvolutionState& state) const;

  Parameter& weight() const { return *weight_; }
  Parameter* bias() const { return bias_; }

 private:
  Variable forward(Tape& tape, Variable x, const PackedRows& rows, ConvolutionState* state) const;

  ConvolutionLayerOptions options_;
  Parameter* weight_;
  Parameter* bias_ = nullptr;
};

struct TextCnnOptions {
  index in = 0;
  index out = 100;                        ///< of each window
  std::vector<index> widths = {3, 4, 5};  ///< of the windows
  bool whole = true;                      ///< windows lie within the text; else they may reach
                                          ///< beyond its ends, where it is padded with zeros
};

/// TextCNN (Kim 2014, "Convolutional neural networks for sentence classification", section 2): for
/// each width a convolution with ReLU and its maximum over time, side by side. A text shorter than
/// a window is padded with zeros (kSame), so that it has a result, too.
///
/// Parameters: windows.0.weight [out, width, in], windows.0.bias [out], windows.1.weight, ...
class TextCnn {
 public:
  TextCnn(const TextCnnOptions& options, const ParameterScope& scope);

  /// x [N, in] -> [sequences, columns()]; an empty sequence gives zeros.
  Variable forward(Tape& tape, Variable x, const PackedRows& rows) const;
  /// The outputs whose maxima forward() takes: x [N, in] -> [N, columns()].
  Variable windows(Tape& tape, Variable x, const PackedRows& rows) const;

  /// out for each width.
  index columns() const { return columns_; }

 private:
  std::vector<ConvolutionLayer> windows_;
  bool whole_;
  index columns_;
};

}  // namespace fovea
