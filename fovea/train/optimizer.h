// SPDX-License-Identifier: Apache-2.0
// AdamW for the parameters of a model: calls the kernel and keeps the moments between updates.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "fovea/grad/parameter.h"
#include "fovea/kernel/adamw.h"
#include "fovea/tensor/safetensors.h"

namespace fovea {

// AdamW for a table of which a step uses few rows (RowUse::kSparse): the other rows are updated
// when they are read next, with the same bits (kernel/adamw.h).

/// The updates that rows of one parameter have missed. The parameter knows it as long as it exists;
/// its end makes what is due.
class TableUpdates final : public MissedUpdates {
 public:
  /// Both must outlive it. m and v are the moments of `parameter`, float32 [V,C].
  TableUpdates(Parameter& parameter, Tensor m, Tensor v);
  ~TableUpdates();
  TableUpdates(const TableUpdates&) = delete;
  TableUpdates& operator=(const TableUpdates&) = delete;

  void make(const Context& context, Vec<const std::int32_t> ids) override;
  void make_all() override;

  /// The slot of the next update, whose number and options are in `step`: the rows with a gradient,
  /// which are up to date. Call updated() after adamw().
  AdamWSlot<float> begin(const Context& context, const AdamWStep& step);
  void updated(const AdamWStep& step);
  /// The slot for the norm of the gradient.
  AdamWSlot<float> slot();

 private:
  AdamWTable<float> table();
  void make_behind(const Context& context);
  double decay() const { return parameter_.decay == Decay::kYes ? 1.0 : 0.0; }

  Parameter& parameter_;
  Tensor m_, v_;
  int threads_ = 1;  // of the last update
  AdamWHistory<float> history_;
  std::vector<std::int32_t> made_;  // updates of the history, by row
  std::vector<RowBehind> behind_;
};

/// The parameters must outlive the optimizer, and their addresses must not change. All are float32.
/// Those that are frozen have no moments and are left as they are.
///
/// An update changes only those rows of a RowUse::kSparse parameter that have a gradient. Its other
/// rows are behind until they are read: before you read its value yourself, call its catch_up().
/// Values from this class and from the tape are up to date.
class Optimizer {
 public:
  /// Moments start at zero. `rates` [parameters]: factors of the learning rate; none: all are 1.
  explicit Optimizer(std::span<Parameter* const> parameters, std::span<const double> rates = {});

  /// The global norm of all gradients, before clipping; not finite if any gradient is not finite.
  double gradient_norm(const Context& context);

  /// Update number `step.step` (from 1): every gradient is read, multiplied by `gradient_scale`,
  /// applied and cleared. Weight decay applies only to parameters with Decay::kYes.
  void step(const Context& context, const AdamWStep& step);

  /// The moments as "NAME.m" and "NAME.v", sharing their memory.
  std::vector<NamedTensor> state() const;
  /// Sets the moments from `state`. Throws kModelDamaged if one is missing or does not fit.
  void restore(const Safetensors& state);

 private:
  struct Moments {
    Parameter* parameter;
    Tensor m, v;
    std::unique_ptr<TableUpdates> table;  // of a kSparse parameter
    double rate = 1;
  };
  void step_at(const Context& context, double rate, AdamWStep step);
  static AdamWSlot<float> slot(Moments& moments);

  std::vector<Moments> moments_;
  std::vector<double> rates_;  // all different ones
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
