// SPDX-License-Identifier: Apache-2.0
// The objectives of all tasks share this: the batches of an update, and the tape of forward and
// backward.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <iterator>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "fovea/grad/ops.h"
#include "fovea/grad/tape.h"
#include "fovea/nn/low_rank.h"
#include "fovea/train/trainer.h"

namespace fovea {

/// The statistics of each attention of an update; the step is not set.
inline AttentionRecord record_of(std::span<const HeadStatistics> attentions) {
  const auto means = [](std::vector<double> sums, index count) {
    for (double& value : sums) value /= static_cast<double>(count);
    return sums;
  };
  AttentionRecord record;
  for (const HeadStatistics& layer : attentions) {
    record.max_logit.push_back(layer.max_logit);
    if (layer.entropy.empty()) continue;
    record.entropy.push_back(means(layer.entropy, layer.queries));
    record.distance.push_back(means(layer.distance, layer.queries));
  }
  return record;
}

/// For equal scores, which few examples often have, the lower loss is better.
inline double score_with_tie(double score, double loss) {
  constexpr double kTie = 1e-9, kMostLoss = 1e3;
  return score - kTie * std::min(loss, kMostLoss);
}

/// Negative log-likelihood, in nats, of a whole set.
struct SetLoss {
  double sum = 0;
  index targets = 0;
  double mean() const { return targets > 0 ? sum / static_cast<double>(targets) : 0; }
};

inline std::optional<Validation> validation_of(const std::optional<SetLoss>& loss) {
  if (!loss) return std::nullopt;
  return Validation{.loss = loss->mean()};
}

/// The loss of `count` batches on an inference tape, where `batch_at` makes them and loss_of(batch)
/// is the sum of one. Nothing if `interrupted` returns true between two. The order of summation is
/// fixed.
template <class BatchAt, class LossOf>
std::optional<SetLoss> loss_of_batches(Tape& tape, index count, const BatchAt& batch_at,
                                       const LossOf& loss_of,
                                       const std::function<bool()>& interrupted) {
  SetLoss loss;
  for (index i = 0; i < count; ++i) {
    if (interrupted && interrupted()) return std::nullopt;
    const auto batch = batch_at(i);
    tape.reset(TapeMode::kInference);
    const Variable of_batch = loss_of(batch);
    loss.sum += double{of_batch.template value<float>()[0][0]};
    loss.targets += batch.target_count();
  }
  return loss;
}

inline InnerResults inner_results(const TrainOptions& recipe) {
  return recipe.recompute ? InnerResults::kRecomputed : InnerResults::kKept;
}

/// The updates of a run, and its evaluations: a kind of model says what the loss of a batch is, and
/// how a set is measured. Model and run must outlive the objective.
template <class Run, class Model, class LossOptions>
class ObjectiveOf : public Objective {
 public:
  using Batch = decltype(std::declval<const Run&>().training->batch(0, 0));
  using Evaluation = typename decltype(Run::validation)::value_type;
  using Interrupted = std::function<bool()>;

  /// `options`: those of the loss that all updates share.
  ObjectiveOf(const Context& context, const Model& model, const Run& run, LossOptions options = {})
      : run_(run), model_(model), options_(options), tape_(context) {
    tape_.set_inner_results(inner_results(run.settings.recipe));
  }

  /// Those of the model, or, of a run that has some, its adapters and what they do not freeze.
  std::span<Parameter* const> parameters() override {
    return adapters_ ? std::span<Parameter* const>(trained_) : model_.parameters();
  }
  index updates_per_epoch() const override { return run_.training->updates_per_epoch(); }
  void observe_attention(bool observe) override { observes_ = observe; }
  AttentionRecord observed_attention() override { return record_of(seen_); }

  index begin_update(index update) override {
    batches_.clear();
    index targets = 0;
    double weight = 0;
    for (index number = 0; number < run_.settings.recipe.accumulate; ++number) {
      batches_.push_back(run_.training->batch(update, number));
      targets += targets_of(batches_.back());
      weight += weight_of(batches_.back());
    }
    options_.scale = 1 / weight;
    options_.dropout.seed = run_.settings.recipe.seed;
    options_.dropout.step = static_cast<std::uint64_t>(update);
    seen_.assign(observes_ ? static_cast<std::size_t>(model_.attentions()) : 0, {});
    options_.attention = seen_;
    return targets;
  }

  double forward(index number) override {
    const Batch& batch = batches_[static_cast<std::size_t>(number)];
    tape_.reset(TapeMode::kTrain);
    loss_ = {};
    hits_ = {};
    if (batch.samples.empty()) return 0;  // the end of an epoch
    loss_ = loss_of_batch(batch);
    return double{loss_.template value<float>()[0][0]};
  }

  Hits hits() const override { return hits_; }

  void backward() override {
    if (loss_.defined()) tape_.backward(loss_);
  }

  bool has_validation() const override { return run_.validation.has_value(); }
  std::optional<Validation> validate(const Interrupted& interrupted) override {
    return measure_set(*run_.validation, interrupted);
  }
  std::optional<Validation> validate_training(const Interrupted& interrupted) override {
    if (!run_.trained) return std::nullopt;
    return measure_set(*run_.trained, interrupted);
  }

 protected:
  virtual index targets_of(const Batch& batch) const = 0;
  /// The share of the batch in the divisor of the update's loss.
  virtual double weight_of(const Batch& batch) const {
    return static_cast<double>(targets_of(batch));
  }
  /// The loss of the batch on tape_, with options_. May count hits_.
  virtual Variable loss_of_batch(const Batch& batch) = 0;
  /// Nothing if it was interrupted.
  virtual std::optional<Validation> measure_set(const Evaluation& set,
                                                const Interrupted& interrupted) = 0;

  /// Trains adapters of the model, if there are some, in place of what they freeze.
  void train_adapters(std::unique_ptr<LowRankAdapters> adapters) {
    if (adapters == nullptr) return;
    adapters_ = std::move(adapters);
    trained_.assign(adapters_->parameters().begin(), adapters_->parameters().end());
    std::ranges::copy_if(model_.parameters(), std::back_inserter(trained_),
                         [](const Parameter* one) { return !one->frozen; });
  }

  /// The tape, for an evaluation between two updates.
  Tape& free_tape() {
    loss_ = {};
    return tape_;
  }

  const Run& run_;
  const Model& model_;
  LossOptions options_;
  Tape tape_;
  Hits hits_;

 private:
  std::unique_ptr<LowRankAdapters> adapters_;
  std::vector<Parameter*> trained_;  // with adapters
  std::vector<Batch> batches_;
  bool observes_ = false;
  std::vector<HeadStatistics> seen_;  // an attention each
  Variable loss_;
};

}  // namespace fovea
