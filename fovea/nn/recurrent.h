// SPDX-License-Identifier: Apache-2.0
// Recurrent layers, one above the other: RNN, GRU, LSTM, SRU (formulas in kernel/recurrent.h and
// kernel/sru.h, papers in docs/formulas.md).
#pragma once

#include <optional>
#include <vector>

#include "fovea/base/random.h"
#include "fovea/grad/ops.h"
#include "fovea/nn/module.h"

namespace fovea {

struct RecurrentLayersOptions {
  RecurrentKind kind = RecurrentKind::kLstm;
  index in = 0;
  index hidden = 0;
  index layers = 1;
  bool bidirectional = false;
  double dropout = 0;  ///< of what a layer gives to the next one
  Biases bias = Biases::kLearned;
  /// The start of the weights; biases are then 0. Without it: PyTorch's, all from uniform(-b, b), b
  /// = 1 / sqrt(hidden).
  std::optional<Init> weight{};
  double forget_bias = 0;  ///< of an LSTM: added to the biases of its forget gates at the start
};

/// Parameters as in PyTorch, k = 0, 1, ... the layer: weight_ih_lK [gates H, in], weight_hh_lK
/// [gates H, H], and for the second direction the same with the suffix _reverse. One bias for each
/// gate, where PyTorch has two that are only ever added: bias_lK [gates H]; GRU also bias_hn_lK
/// [H], which is not. For an SRU, weight_hh_lK is [2, H] and bias_lK [2 H] (grad/ops.h).
class RecurrentLayers {
 public:
  /// Throws Error(kShape) unless all sizes are positive, Error(kOptionValue) unless dropout is in
  /// [0, 1).
  RecurrentLayers(const RecurrentLayersOptions& options, const ParameterScope& scope);

  /// x [N, in] -> [N, out()]. The dropout masks have the numbers from key.layer on, one for each
  /// layer but the last.
  Variable forward(Tape& tape, Variable x, const PackedRows& rows, const DropoutKey& key) const;
  /// Inference, of rows that go on from `states`, one for each layer (empty: from 0), which become
  /// those after the last row of each sequence: the same bits as in one call. Only of one
  /// direction. By default all rows are one sequence.
  Variable forward(Tape& tape, Variable x, std::vector<RecurrentState>& states,
                   const PackedRows& rows = {}) const;

  index out() const { return options_.hidden * directions(); }
  index layers() const { return options_.layers; }

 private:
  struct Direction {
    Parameter* weight_ih;
    Parameter* weight_hh;
    Parameter* bias = nullptr;
    Parameter* bias_hn = nullptr;
  };
  index directions() const { return options_.bidirectional ? 2 : 1; }
  Direction add_direction(index in, const std::string& suffix, const ParameterScope& scope) const;
  void open_forget_gates(Parameter& bias) const;
  Variable run(Tape& tape, Variable x, index layer, const PackedRows& rows,
               RecurrentState* state) const;

  RecurrentLayersOptions options_;
  std::vector<Direction> weights_;  // of layer 0 forward, layer 0 reverse, layer 1 forward ...
};

}  // namespace fovea
