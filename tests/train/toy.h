// SPDX-License-Identifier: Apache-2.0
// The smallest thing that can be trained: numbers that shall become others.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "fovea/train/trainer.h"

namespace fovea {

/// Loss of an update: the mean of (w - target)^2 / 2 over 8 weights, the targets a little different
/// in every update. Validation: the same with the targets themselves.
class ToyObjective final : public Objective {
 public:
  ToyObjective() {
    weights_.name = "weights";
    weights_.value = Tensor(Shape{8});
  }

  std::span<Parameter* const> parameters() override { return parameters_; }
  index updates_per_epoch() const override { return 5; }
  void observe_attention(bool observe) override { observes_ = observe; }
  AttentionRecord observed_attention() override {
    return {.entropy = {{static_cast<double>(update_), observes_ ? 1.0 : 0.0}}};
  }
  index begin_update(index update) override {
    update_ = update;
    return 8;
  }
  double forward(index) override {
    if (on_forward) on_forward(update_);
    return loss(1e-2 * static_cast<double>((update_ * 37) % 11)) + extra_loss;
  }
  Hits hits() const override { return counts_hits ? Hits{update_ % 9, 8} : Hits{}; }
  void backward() override {
    float* gradient = weights_.gradient_to_write().data<float>();
    for (index i = 0; i < 8; ++i) gradient[i] += static_cast<float>(difference(i, 0) / 8);
  }
  bool has_validation() const override { return validates; }
  std::optional<Validation> validate(const std::function<bool()>& interrupted) override {
    if (interrupted()) return std::nullopt;
    ++validations;
    Validation found{.loss = validation_loss ? validation_loss(update_ + 1) : loss(0)};
    if (score) {
      found.score = score(update_ + 1);
      found.metrics = {{"accuracy", *found.score}};
    }
    return found;
  }

  std::optional<Validation> validate_training(const std::function<bool()>&) override {
    return Validation{.loss = loss(0) / 2, .metrics = {{"accuracy", 0.5}}};
  }

  const float* values() const { return weights_.value.data<float>(); }
  Tensor value() const { return weights_.value; }

  bool validates = true;
  bool counts_hits = false;
  double extra_loss = 0;
  int validations = 0;
  std::function<void(index update)> on_forward;
  std::function<double(index step)> validation_loss;
  std::function<double(index step)> score;  // none: the loss chooses the best weights

 private:
  double difference(index i, double shift) const {
    return double{values()[i]} - (static_cast<double>(i) + shift);
  }
  double loss(double shift) const {
    double sum = 0;
    for (index i = 0; i < 8; ++i) sum += difference(i, shift) * difference(i, shift) / 2;
    return sum / 8;
  }

  Parameter weights_;
  std::vector<Parameter*> parameters_{&weights_};
  index update_ = 0;
  bool observes_ = false;
};

/// Remembers what it was told, and asks for `wanted` once `at_step` updates are done.
class ToyObserver : public TrainingObserver {
 public:
  void noticed(const std::string& what) override { notices.push_back(what); }
  void updated(const UpdateRecord& record, double) override {
    updates.push_back(record);
    if (on_updated) on_updated(record.step);
  }
  void evaluated(const EvaluationRecord& record) override { evaluations.push_back(record); }
  void measured(const MetricsRecord& record) override { metrics.push_back(record); }
  void saved(index step, const std::filesystem::path&) override { saves.push_back(step); }
  Request request() override {
    const index step = updates.empty() ? 0 : updates.back().step;
    if (wanted == Request::kNone || step < at_step) return Request::kNone;
    const Request now = wanted;
    if (wanted == Request::kSave) wanted = Request::kNone;
    return now;
  }

  Request wanted = Request::kNone;
  index at_step = 0;
  std::function<void(index step)> on_updated;
  std::vector<std::string> notices;
  std::vector<UpdateRecord> updates;
  std::vector<EvaluationRecord> evaluations;
  std::vector<MetricsRecord> metrics;
  std::vector<index> saves;
};

inline TrainerSetup toy_setup(const std::filesystem::path& folder, TrainOptions options = {}) {
  options.lr = 0.1;
  options.min_lr = 0.01;
  options.warmup = 3;
  if (options.stop_after == TrainOptions().stop_after) options.stop_after = "20u";
  if (options.eval_every == TrainOptions().eval_every) options.eval_every = "5u";
  if (options.save_every == TrainOptions().save_every) options.save_every = "10u";
  return {.options = options,
          .folder = folder,
          .identity = {.model = "m", .data = "d", .tokenizer = "t", .isa = "i", .version = "v"},
          .attachments = {{"config.json", "{}"}}};
}

}  // namespace fovea
