// SPDX-License-Identifier: Apache-2.0
#include "fovea/task/objective.h"

#include "fovea/task/attention_record.h"

namespace fovea {

namespace {

template <class T>
Vec<const T> view(const std::vector<T>& values) {
  return {values.data(), static_cast<index>(values.size())};
}

TokenBatch view(const Batch& batch) {
  return {.ids = view(batch.ids),
          .targets = view(batch.targets),
          .offsets = view(batch.offsets),
          .samples = view(batch.samples)};
}

}  // namespace

std::optional<SetLoss> loss_of(Tape& tape, const LanguageModel& model, const EvaluationBatches& set,
                               const std::function<bool()>& interrupted) {
  SetLoss loss;
  for (index i = 0; i < set.size(); ++i) {
    if (interrupted && interrupted()) return std::nullopt;
    const Batch batch = set[i];
    tape.reset(TapeMode::kInference);
    loss.sum += double{model.loss(tape, view(batch)).value<float>()[0][0]};
    loss.targets += batch.target_count();
  }
  return loss;
}

LanguageModelObjective::LanguageModelObjective(const Context& context, const LanguageModel& model,
                                               LanguageModelText text)
    : model_(model), text_(text), tape_(context) {}

index LanguageModelObjective::begin_update(index update) {
  batches_.clear();
  index targets = 0;
  for (index number = 0; number < text_.accumulate; ++number) {
    batches_.push_back(text_.training.batch(update, number));
    targets += batches_.back().target_count();
  }
  options_.scale = 1.0 / static_cast<double>(targets);
  options_.dropout.seed = text_.seed;
  options_.dropout.step = static_cast<std::uint64_t>(update);
  seen_.assign(observes_ ? static_cast<std::size_t>(model_.attentions()) : 0, {});
  options_.attention = seen_;
  return targets;
}

AttentionRecord LanguageModelObjective::observed_attention() { return record_of(seen_); }

double LanguageModelObjective::forward(index batch) {
  const Batch& chosen = batches_[static_cast<std::size_t>(batch)];
  tape_.reset(TapeMode::kTrain);
  loss_ = {};
  if (chosen.tokens() == 0) return 0;
  loss_ = model_.loss(tape_, view(chosen), options_);
  return double{loss_.value<float>()[0][0]};
}

void LanguageModelObjective::backward() {
  if (loss_.defined()) tape_.backward(loss_);
}

std::optional<Validation> LanguageModelObjective::validate(
    const std::function<bool()>& interrupted) {
  loss_ = {};
  const std::optional<SetLoss> loss = loss_of(tape_, model_, *text_.validation, interrupted);
  if (!loss) return std::nullopt;
  return Validation{.loss = loss->mean()};
}

}  // namespace fovea
