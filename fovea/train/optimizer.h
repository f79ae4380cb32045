// SPDX-License-Identifier: Apache-2.0
// The optimizer of the parameters of a model: keeps their state between updates, and updates them
// by its rules (train/update_rule.h).
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "fovea/grad/parameter.h"
#include "fovea/kernel/adamw.h"
#include "fovea/tensor/safetensors.h"
#include "fovea/train/options.h"
#include "fovea/train/table_updates.h"
#include "fovea/train/update_rule.h"

namespace fovea {

/// The parameters must outlive the optimizer, and their addresses must not change. All are float32.
/// Those that are frozen have no state and are left as they are.
///
/// Where the rule of a RowUse::kSparse parameter goes by rows, an update changes only those that
/// have a gradient. Its other rows are behind until they are read: before you read its value
/// yourself, call its catch_up(). Values from this class and from the tape are up to date.
class Optimizer {
 public:
  /// The state begins as zeros. `rates` [parameters]: factors of the learning rate; none: all
  /// are 1.
  explicit Optimizer(std::span<Parameter* const> parameters,
                     OptimizerKind kind = OptimizerKind::kAdamW,
                     std::span<const double> rates = {});

  /// The global norm of all gradients, before clipping; not finite if any gradient is not finite.
  double gradient_norm(const Context& context);

  /// Update number `step.step` (from 1): every gradient is read, multiplied by `gradient_scale`,
  /// applied and cleared. Weight decay applies only to parameters with Decay::kYes.
  void step(const Context& context, const AdamWStep& step);

  /// The state by name, such as "NAME.m", sharing its memory.
  std::vector<NamedTensor> state() const;
  /// Sets the state. Throws kModelDamaged if a tensor is missing or does not fit.
  void restore(const Safetensors& state);

 private:
  struct Ruled {
    ParameterState state;
    const UpdateRule* rule;
    double rate = 1;

    bool goes_with(const Ruled& other) const { return rule == other.rule && rate == other.rate; }
  };

  std::vector<Ruled> ruled_;
  std::vector<AdamWSlot<float>> slots_;
};

/// The values of the parameters by name, sharing their memory, as model.safetensors stores them.
std::vector<NamedTensor> parameter_tensors(std::span<Parameter* const> parameters);
/// The name of the first that has a value that is not finite; "" if there is none.
std::string first_not_finite(std::span<const NamedTensor> weights);
/// Sets the values from `tensors`: there must be exactly one tensor for each parameter, of its
/// shape and type, or bfloat16. `where` names the file. Throws kModelDamaged.
void restore_parameters(std::span<Parameter* const> parameters, const Safetensors& tensors,
                        std::string_view where);

}  // namespace fovea
