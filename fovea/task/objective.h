// SPDX-License-Identifier: Apache-2.0
// The objectives of all tasks share this: the batches of an update, and the tape of forward and
// backward.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "fovea/grad/ops.h"
#include "fovea/grad/tape.h"
#include "fovea/train/trainer.h"

namespace fovea {

/// The statistics of each attention of an update; the step is not set.
AttentionRecord record_of(std::span<const HeadStatistics> attentions);

/// For equal scores, which few examples often have, the lower loss is better.
double score_with_tie(double score, double loss);

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

/// How the updates of a run are made of its batches.
struct UpdateOptions {
  index accumulate = 1;    ///< batches of an update
  std::uint64_t seed = 0;  ///< of dropout
};

/// The updates of `Model`, whose batches `Training` makes: a task says what the loss of a batch is,
/// and validates. Model and training must outlive the objective.
template <class Model, class Training, class LossOptions>
class ObjectiveOf : public Objective {
 public:
  using Batch = decltype(std::declval<Training&>().batch(0, 0));

  std::span<Parameter* const> parameters() override { return model_.parameters(); }
  index updates_per_epoch() const override { return training_.updates_per_epoch(); }
  void observe_attention(bool observe) override { observes_ = observe; }
  AttentionRecord observed_attention() override { return record_of(seen_); }

  index begin_update(index update) override {
    batches_.clear();
    index targets = 0;
    double weight = 0;
    for (index number = 0; number < update_.accumulate; ++number) {
      batches_.push_back(training_.batch(update, number));
      targets += targets_of(batches_.back());
      weight += weight_of(batches_.back());
    }
    options_.scale = 1 / weight;
    options_.dropout.seed = update_.seed;
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

 protected:
  /// `options`: those of the loss that all updates share.
  ObjectiveOf(const Context& context, const Model& model, Training& training, UpdateOptions update,
              LossOptions options = {})
      : model_(model), options_(options), tape_(context), training_(training), update_(update) {}

  virtual index targets_of(const Batch& batch) const = 0;
  /// The share of the batch in the divisor of the update's loss.
  virtual double weight_of(const Batch& batch) const {
    return static_cast<double>(targets_of(batch));
  }
  /// The loss of the batch on tape_, with options_. May count hits_.
  virtual Variable loss_of_batch(const Batch& batch) = 0;

  /// The tape, for an evaluation between two updates.
  Tape& free_tape() {
    loss_ = {};
    return tape_;
  }

  const Model& model_;
  LossOptions options_;
  Tape tape_;
  Hits hits_;

 private:
  Training& training_;
  const UpdateOptions update_;
  std::vector<Batch> batches_;
  bool observes_ = false;
  std::vector<HeadStatistics> seen_;  // an attention each
  Variable loss_;
};

}  // namespace fovea
