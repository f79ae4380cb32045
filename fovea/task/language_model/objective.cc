// SPDX-License-Identifier: Apache-2.0
#include "fovea/task/language_model/objective.h"

#include <algorithm>

namespace fovea {

namespace {

TokenBatch view(const Batch& batch) {
  return {.ids = batch.ids,
          .targets = batch.targets,
          .offsets = batch.offsets,
          .samples = batch.samples};
}

}  // namespace

std::optional<SetLoss> loss_of(Tape& tape, const LanguageModel& model, const EvaluationBatches& set,
                               const std::function<bool()>& interrupted) {
  return loss_of_batches(
      tape, set.size(), [&](index i) { return set[i]; },
      [&](const Batch& batch) { return model.loss(tape, view(batch)); }, interrupted);
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
  return loss_of_batches(
      tape, (count + batch_size - 1) / batch_size, batch_at,
      [&](const Batch& batch) { return model.loss(tape, view(batch)); }, interrupted);
}

LanguageModelObjective::LanguageModelObjective(const Context& context, const LanguageModel& model,
                                               LanguageModelText text)
    : ObjectiveOf(context, model, text.training, {text.accumulate, text.seed}), text_(text) {}

Variable LanguageModelObjective::loss_of_batch(const Batch& batch) {
  return model_.loss(tape_, view(batch), options_);
}

std::optional<Validation> LanguageModelObjective::validate(
    const std::function<bool()>& interrupted) {
  return validation_of(loss_of(free_tape(), model_, *text_.validation, interrupted));
}

std::optional<Validation> LanguageModelObjective::validate_training(
    const std::function<bool()>& interrupted) {
  return validation_of(loss_of(free_tape(), model_, text_.training.sequences(),
                               text_.validation->batch_size(), interrupted));
}

}  // namespace fovea
