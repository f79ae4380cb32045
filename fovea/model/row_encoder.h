// SPDX-License-Identifier: Apache-2.0
// What makes a vector of a text, in inference: an encoder that makes a row of each token, and
// layers over the row that all those of a text are pooled into.
#pragma once

#include <span>
#include <utility>
#include <variant>
#include <vector>

#include "fovea/kernel/elementwise.h"
#include "fovea/model/bert.h"
#include "fovea/model/model.h"
#include "fovea/model/pass_plan.h"
#include "fovea/model/source_encoder.h"
#include "fovea/nn/linear.h"

namespace fovea {

/// f(W x + b), with `residual` added to x or, where its width is another, to a product of x.
struct DenseConfig {
  index in = 0, out = 0;
  bool bias = true;
  bool residual = false;
  Activation activation = Activation::kTanh;

  bool projects() const { return residual && in != out; }
};

/// One layer over another.
using DenseConfigs = std::vector<DenseConfig>;
inline const DenseConfigs& resolve(const DenseConfigs& configs) { return configs; }

/// Parameters of layer N: N.linear.weight and, with a bias, N.linear.bias; N.residual.weight where
/// the residual is projected.
class DenseLayers {
 public:
  DenseLayers(const DenseConfigs& configs, const ParameterScope& scope);

  /// [N, in of the first layer] -> [N, out of the last]; x without layers.
  Variable forward(Tape& tape, Variable x) const;
  index attentions() const { return 0; }

 private:
  struct Layer {
    DenseConfig config;
    Linear linear;
    Parameter* residual;  // null: not projected
  };
  std::vector<Layer> layers_;
};

class Dense : public ModelOf<DenseConfigs, DenseLayers> {
 public:
  using ModelOf::ModelOf;
  Variable forward(Tape& tape, Variable x) const { return layers().forward(tape, x); }
};

/// An encoder of BERT's kind, or that of a T5.
class RowEncoder {
 public:
  explicit RowEncoder(Bert model) : model_(std::move(model)) {}
  explicit RowEncoder(SourceEncoder model) : model_(std::move(model)) {}

  index width() const;
  /// The length of the longest text.
  index block() const;
  std::span<Parameter* const> parameters() const;
  BertRows forward(Tape& tape, const TextRows& texts) const;
  /// As plan_passes_apart() has it.
  PassCost plan_apart(const Context& context, const TapeLoad& load) const;

 private:
  std::variant<Bert, SourceEncoder> model_;
};

/// The cost of so many rows, in inference alone.
PassCost plan_pass(const Context& context, const DenseConfigs& configs, const TapeLoad& load);

}  // namespace fovea
