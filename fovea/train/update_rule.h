// SPDX-License-Identifier: Apache-2.0
// The optimizers: one table of how parameters of each kind are updated, and what is kept for them.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "fovea/grad/parameter_kind.h"
#include "fovea/kernel/adamw.h"
#include "fovea/tensor/tensor.h"
#include "fovea/train/options.h"

namespace fovea {

class TableUpdates;

/// What is kept of one parameter between updates.
struct ParameterState {
  Parameter* parameter = nullptr;
  std::uint32_t number = 0;          ///< of the parameter among all that are trained
  std::vector<Tensor> tensors = {};  ///< as the rule's state_of() has them; they begin as zeros
  std::shared_ptr<TableUpdates> table =
      {};  ///< of a table whose rows are updated when they are read
};

/// A tensor of the state of a parameter NAME is stored as "NAME.SUFFIX".
struct StateTensor {
  std::string_view suffix;
  Shape shape;
  DType dtype = DType::kFloat32;
};

/// A way to update parameters. All read an AdamWStep, of which each takes what its formula has.
struct UpdateRule {
  /// What is kept for a parameter of that shape.
  std::vector<StateTensor> (*state_of)(const Shape& shape);
  /// Updates all these parameters, whose gradients are finished_gradient() or, with a table, of
  /// rows.
  void (*update)(const Context& context, std::span<ParameterState* const> states,
                 const AdamWStep& step);
  /// Throws kModelDamaged for stored values that no update gives.
  void (*check)(const ParameterState& state);
  double bytes_of_value = 0;  ///< of the state, for each value of a parameter
  /// Whether a table of which a step reads few rows is updated row by row, when they are read. Else
  /// it is made RowUse::kDense.
  bool by_rows = false;
  /// Of an update of a matrix of that shape; null: none worth counting.
  double (*scratch_bytes)(double rows, double columns) = nullptr;
};

/// The rule for a parameter of that kind.
const UpdateRule& update_rule(OptimizerKind optimizer, ParameterKind kind);

/// Bytes of the states of that many values, as the memory holds them and a checkpoint stores them.
double state_bytes(OptimizerKind optimizer, const ParameterSizes& sizes);
/// Bytes that an update takes besides.
double update_bytes(OptimizerKind optimizer, const ParameterSizes& sizes);

}  // namespace fovea
