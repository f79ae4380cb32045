// SPDX-License-Identifier: Apache-2.0
#include "fovea/nn/convolution.h"

namespace fovea {

ConvolutionLayer::ConvolutionLayer(const ConvolutionLayerOptions& o, const ParameterScope& scope)
    : options_(o) {
  check(o.in > 0 && o.out > 0 && o.width > 0 && o.dilation > 0,
        "convolution: sizes must be positive; in is {}, out is {}, width is {}, dilation is {}",
        o.in, o.out, o.width, o.dilation);
  check(!o.gated || o.activation == Activation::kNone,
        "convolution: a layer has gates or an activation, not both");
  const index rows = o.gated ? checked_product(2, o.out, "rows of a gated convolution") : o.out;
  const index inputs = checked_product(o.width, o.in, "inputs of a convolution");
  weight_ =
      &scope.add("weight", {rows, o.width, o.in}, o.weight.value_or(linear_uniform_init(inputs)));
  if (o.bias == Biases::kLearned) {
    bias_ = &scope.add("bias", {rows}, Init::zeros(), Decay::kNo);
  }
}

Variable ConvolutionLayer::forward(Tape& tape, Variable x, const PackedRows& rows,
                                   ConvolutionState* state) const {
  check(x.columns() == options_.in, "convolution: x must have {} columns; it has {}", options_.in,
        x.columns());
  const Variable y =
      convolution(tape, x, tape.parameter(*weight_), parameter_or_none(tape, bias_), rows,
                  {.width = options_.width,
                   .padding = options_.padding,
                   .dilation = options_.dilation,
                   .activation = options_.activation,
                   .state = state});
  return options_.gated ? glu(tape, y) : y;
}

Variable ConvolutionLayer::forward(Tape& tape, Variable x, const PackedRows& rows) const {
  return forward(tape, x, rows, nullptr);
}

Variable ConvolutionLayer::forward(Tape& tape, Variable x, ConvolutionState& state) const {
  return forward(tape, x, {}, &state);
}

std::unique_ptr<LayerSession> ConvolutionLayer::begin(index) const {
  return std::make_unique<StateSession<ConvolutionLayer, ConvolutionState>>(*this);
}

TextCnn::TextCnn(const TextCnnOptions& o, const ParameterScope& scope) : whole_(o.whole) {
  check(!o.widths.empty(), "text cnn: it needs a window at least");
  columns_ = checked_product(static_cast<index>(o.widths.size()), o.out, "columns of a text cnn");
  index number = 0;
  for (const index width : o.widths) {
    windows_.emplace_back(
        ConvolutionLayerOptions{
            .in = o.in, .out = o.out, .width = width, .activation = Activation::kRelu},
        scope["windows"][number++]);
  }
}

Variable TextCnn::windows(Tape& tape, Variable x, const PackedRows& rows) const {
  std::vector<Variable> all;
  for (const ConvolutionLayer& window : windows_) {
    const Variable y = window.forward(tape, x, rows);
    const index width = window.weight().value.shape()[1];
    all.push_back(whole_ ? whole_windows(tape, y, width, rows) : y);
  }
  return concat_columns(tape, all);
}

Variable TextCnn::forward(Tape& tape, Variable x, const PackedRows& rows) const {
  return max_over_time(tape, windows(tape, x, rows), rows);
}

}  // namespace fovea
