// SPDX-License-Identifier: Apache-2.0
#include "fovea/model/row_encoder.h"

#include <type_traits>

namespace fovea {

DenseLayers::DenseLayers(const DenseConfigs& configs, const ParameterScope& scope) {
  for (index n = 0; n < std::ssize(configs); ++n) {
    const DenseConfig& c = configs[static_cast<std::size_t>(n)];
    const LinearOptions options{
        .in = c.in, .out = c.out, .bias = c.bias ? Biases::kLearned : Biases::kNone};
    Linear linear(options, scope[n]["linear"]);
    Parameter* const residual =
        c.projects() ? &scope[n]["residual"].add("weight", {c.out, c.in},
                                                 Init::normal(kInitDeviation), Decay::kYes)
                     : nullptr;
    layers_.push_back({.config = c, .linear = linear, .residual = residual});
  }
}

Variable DenseLayers::forward(Tape& tape, Variable x) const {
  for (const Layer& layer : layers_) {
    const Variable y = layer.linear.forward(tape, x, layer.config.activation);
    const bool projects = layer.residual != nullptr;
    const Variable added = projects ? linear(tape, x, tape.parameter(*layer.residual)) : x;
    x = layer.config.residual ? add(tape, y, added) : y;
  }
  return x;
}

index RowEncoder::width() const {
  if (const auto* const bert = std::get_if<Bert>(&model_)) return bert->config().width;
  return std::get<SourceEncoder>(model_).config().translator.width;
}

index RowEncoder::block() const {
  if (const auto* const bert = std::get_if<Bert>(&model_)) return bert->config().block;
  return std::get<SourceEncoder>(model_).config().translator.block;
}

std::span<Parameter* const> RowEncoder::parameters() const {
  return std::visit([](const auto& model) { return model.parameters(); }, model_);
}

BertRows RowEncoder::forward(Tape& tape, const TextRows& texts) const {
  if (const auto* const bert = std::get_if<Bert>(&model_)) {
    return bert->forward(tape, {.texts = texts});
  }
  return std::get<SourceEncoder>(model_).forward(tape, texts);
}

PassCost RowEncoder::plan_apart(const Context& context, const TapeLoad& load) const {
  return std::visit(
      [&](const auto& model) { return plan_passes_apart(context, model.config(), load); }, model_);
}

PassCost plan_pass(const Context& context, const DenseConfigs& configs, const TapeLoad& load) {
  if (configs.empty()) return {};
  return plan(
      context, load, [&](const auto& options) { return Dense(configs, options); },
      [&](Tape& tape, const Dense& model, std::span<HeadStatistics>) {
        return model.forward(tape, tape.result(load.tokens, configs.front().in, DType::kFloat32));
      });
}

}  // namespace fovea
