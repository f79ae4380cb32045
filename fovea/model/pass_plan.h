// SPDX-License-Identifier: Apache-2.0
// The memory of a model's forward and, in training, of its backward: found by a plan
// (base/profile.h) of the model itself on the largest batch that the data can give. Each model has
// a plan_pass(context, config, load) beside it, most with what a run changes of the model.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "fovea/base/context.h"
#include "fovea/base/profile.h"
#include "fovea/grad/parameter_kind.h"
#include "fovea/grad/tape.h"
#include "fovea/model/text_batch.h"
#include "fovea/nn/low_rank.h"
#include "fovea/nn/module.h"

namespace fovea {

/// A batch of a language model.
struct TapeLoad {
  index tokens = 0;
  TapeMode mode = TapeMode::kTrain;
  bool observes = false;                      ///< with statistics of heads (LossOptions::attention)
  index sequences = 0;                        ///< at most; 0: each has `block` tokens
  Precision precision = Precision::kFloat32;  ///< of the products
  InnerResults inner = InnerResults::kKept;   ///< of the layers, in training
  /// The sequences are so long, `tokens` together; none: the first ones are as long as they can be.
  std::vector<std::int32_t> lengths = {};

  /// How many ids a plan lists.
  index listed() const { return tokens; }
  TapeLoad part(double share) const;
};

/// A pass takes these: bytes besides the values of the parameters and their gradients, and work.
struct PassCost {
  double tape = 0;            ///< values, and gradients that exist at the same time
  double packed = 0;          ///< packed copies of the weights, and other buffers of a call
  double scratch = 0;         ///< of all threads, during a call
  double flops = 0;           ///< multiplications and additions, of products and of attention
  ParameterSizes sizes = {};  ///< of the model

  double bytes() const { return tape + packed + scratch; }
};
/// The memory of passes one after another, which share it.
PassCost larger_of_each(const PassCost& a, const PassCost& b);

/// The memory of batches on as many threads at once as the context has, each with a tape of its
/// own; the packed copies are shared.
template <class Config, class Load>
PassCost plan_passes_apart(const Context& context, const Config& config, const Load& load) {
  PassCost cost = plan_pass(Context(1), config, load);
  cost.tape *= context.threads();
  cost.scratch *= context.threads();
  return cost;
}

// ---- of which the models make their plan_pass()

/// The part of a count, at least 1.
index part_of(index count, double share);
/// 0 to `below` - 1, again and again: as many different ones as there can be.
std::vector<std::int32_t> ids_below(index count, index below);

/// The ids of a batch, and where its sequences begin. If nobody says how long these are: as many as
/// it can have, the first ones as long as a sequence can be.
struct PlannedRows {
  std::vector<std::int32_t> ids, offsets;

  PlannedRows(const TapeLoad& load, index block, index vocabulary);
  /// Puts a separator into the middle of each pair, and nowhere else.
  void separate(std::int32_t separator);
  TextRows view() const { return {.ids = ids, .offsets = offsets}; }
};

PassCost cost_of_plan(const Context& context, const Plan& plan, const Profile& profile,
                      const Tape& tape, std::span<Parameter* const> parameters);
/// The bytes that were refused; throws the error again if there are none.
PassCost cost_of_refusal(const Plan& plan, const Error& error);

/// The cost of a loss, which forward(tape, model, statistics of its heads) computes of the model
/// that make(options) makes; in training also that of its gradient.
template <class Make, class Forward>
PassCost plan(const Context& given, const TapeLoad& load, const Make& make,
              const Forward& forward) {
  Plan plan;
  try {
    const Context context = given.with(load.precision).planned(plan);
    const auto model = make(ParameterSetOptions{.memory = ParameterMemory::kUnwritten});
    std::vector<HeadStatistics> seen(load.observes ? static_cast<std::size_t>(model.attentions())
                                                   : 0);
    Profile profile;
    Tape tape(context.profiled(profile), load.mode);
    tape.set_inner_results(load.inner);
    const Variable loss = forward(tape, model, std::span<HeadStatistics>(seen));
    if (load.mode == TapeMode::kTrain) tape.backward(loss);
    return cost_of_plan(context, plan, profile, tape, model.parameters());
  } catch (const Error& error) {
    return cost_of_refusal(plan, error);
  }
}

/// What a run changes of a model before its passes: called with the model that is planned. Returns
/// the adapters that it has then, or null.
template <class Model>
using ModelChange = std::function<std::unique_ptr<LowRankAdapters>(const Model& model)>;

/// A model that is planned, and the adapters that it has.
template <class Model>
struct ChangedModel {
  ChangedModel(Model made, const ModelChange<Model>& change)
      : model(std::move(made)), adapters(change ? change(model) : nullptr) {
    all.assign(model.parameters().begin(), model.parameters().end());
    if (adapters == nullptr) return;
    all.insert(all.end(), adapters->parameters().begin(), adapters->parameters().end());
  }

  index attentions() const { return model.attentions(); }
  std::span<Parameter* const> parameters() const { return all; }

  Model model;
  std::unique_ptr<LowRankAdapters> adapters;
  std::vector<Parameter*> all;  ///< also of the adapters
};

/// The cost of a loss of such a model, as plan() has it.
template <class Model, class Make, class Forward>
PassCost plan_changed(const Context& context, const TapeLoad& load, const Make& make,
                      const ModelChange<Model>& change, const Forward& forward) {
  return plan(
      context, load,
      [&](const auto& options) { return ChangedModel<Model>(make(options), change); },
      [&](Tape& tape, const ChangedModel<Model>& changed, std::span<HeadStatistics> seen) {
        return forward(tape, changed.model, seen);
      });
}

/// A batch of more is not listed: what a pass takes is linear in it.
inline constexpr index kMostPlanned = index{1} << 20;

/// From the plans of two parts of the batch.
template <class Config, class Load, class... More>
PassCost extrapolated(const Context& context, const Config& config, const Load& load,
                      const More&... more) {
  const double share = static_cast<double>(kMostPlanned) / static_cast<double>(load.listed()) / 2;
  const PassCost half = plan_pass(context, config, load.part(share / 2), more...),
                 all = plan_pass(context, config, load.part(share), more...);
  const auto at_all = [&](double PassCost::*part) {
    return all.*part + (all.*part - half.*part) / (share / 2) * (1 - share);
  };
  return {at_all(&PassCost::tape), at_all(&PassCost::packed), at_all(&PassCost::scratch),
          at_all(&PassCost::flops), all.sizes};
}

}  // namespace fovea
