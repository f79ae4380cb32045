// SPDX-License-Identifier: Apache-2.0
#include "fovea/task/language_model/objective.h"

#include <algorithm>

#include "fovea/task/attention_record.h"

namespace fovea {

namespace {

TokenBatch view(const Batch& batch) {
  return {.ids = batch.ids,
          .targets = batch.targets,
          .offsets = batch.offsets,
          .samples = batch.samples};
}

std::optional<SetLoss> loss_of_batches(Tape& tape, const LanguageModel& model, index count,
                                       const std::function<Batch(index)>& batch_at,
                                       const std::function<bool()>& interrupted) {
  SetLoss loss;
  for (index i = 0; i < count; ++i) {
    if (interrupted && interrupted()) return std::nullopt;
    const Batch batch = batch_at(i);
    tape.reset(TapeMode::kInference);
    loss.sum += double{model.loss(tape, view(batch)).value<float>()[0][0]};
    loss.targets += batch.target_count();
  }
  return loss;
}

}  // namespace

std::optional<SetLoss> loss_of(Tape& tape, const LanguageModel& model, const EvaluationBatches& set,
                               const std::function<bool()>& interrupted) {
  return loss_of_batches(
      tape, model, set.size(), [&](index i) { return set[i]; }, interrupted);
}

std::optional<SetLoss> loss_of(Tape& tape, const LanguageModel& model, const Sequences& sequences,
                               index batch_size, const std::function<bool()>& interrupted) {
  const auto tokens = static_cast<index>(sequences.stream.size()), block = model.config().block;
  const bool cut = !sequences.slices.empty();
  const index count =
      cut ? static_cast<index>(sequences.slices.size()) : (tokens - 2 + block) / block;
  const auto slice = [&](index n) {
    if (cut) return sequences.slices[static_cast<std::size_t>(n)];
    return Slice{n * block, std::min(block, tokens - 1 - n * block)};
  };
  const auto batch_at = [&](index i) {
    Batch batch;
    const index end = std::min(count, (i + 1) * batch_size);
    for (index n = i * batch_size; n < end; ++n) {
      append(batch, sequences.stream, slice(n), static_cast<std::uint64_t>(n));
    }
    return batch;
  };
  return loss_of_batches(tape, model, (count + batch_size - 1) / batch_size, batch_at, interrupted);
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

std::optional<Validation> LanguageModelObjective::validate_training(
    const std::function<bool()>& interrupted) {
  loss_ = {};
  const std::optional<SetLoss> loss = loss_of(tape_, model_, text_.training.sequences(),
                                              text_.validation->batch_size(), interrupted);
  if (!loss) return std::nullopt;
  return Validation{.loss = loss->mean()};
}

}  // namespace fovea
