// SPDX-License-Identifier: Apache-2.0
// AdamW over the parameters of a model: the kernel, and the moments that it keeps between updates.
#pragma once

#include <span>
#include <vector>

#include "fovea/grad/parameter.h"
#include "fovea/kernel/adamw.h"
#include "fovea/tensor/safetensors.h"

namespace fovea {

/// The parameters must outlive the optimizer and stay where they are. All are float32.
class Optimizer {
 public:
  /// Moments start at zero.
  explicit Optimizer(std::span<Parameter* const> parameters);

  /// Of all gradients as they are; not finite if any of them is not.
  double gradient_norm(const Context& context);

  /// Update number `step` (from 1): every gradient is read, multiplied by `gradient_scale`, applied
  /// and cleared. Weight decay reaches only the parameters that say so.
  void step(const Context& context, const AdamWStep& step);

  /// The moments as "NAME.m" and "NAME.v", sharing their memory.
  std::vector<NamedTensor> state() const;
  /// Takes the moments out of `state`. Throws kModelDamaged if one is missing or does not fit.
  void restore(const Safetensors& state);

 private:
  std::vector<AdamWSlot<float>> slots();

  struct Moments {
    Parameter* parameter;
    Tensor m, v;
  };
  std::vector<Moments> moments_;
};

/// The values of the parameters by name, sharing their memory: what model.safetensors holds.
std::vector<NamedTensor> parameter_tensors(std::span<Parameter* const> parameters);
/// Takes the values out of `tensors`, of which there must be exactly one for each parameter, of its
/// shape and type. `where` names the file. Throws kModelDamaged.
void restore_parameters(std::span<Parameter* const> parameters, const Safetensors& tensors,
                        std::string_view where);

}  // namespace fovea
