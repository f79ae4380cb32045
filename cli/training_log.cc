// SPDX-License-Identifier: Apache-2.0
#include "cli/training_log.h"

#include <fmt/core.h>
#include <unistd.h>

#include <iostream>

#include "cli/output.h"
#include "cli/signals.h"
#include "fovea/text/utf8.h"

namespace fovea::cli {

void TrainingLog::begins(const RunState& state, double fraction_done) {
  const Terminal terminal = inspect_terminal(STDERR_FILENO);
  progress_.emplace(
      std::cerr,
      ProgressOptions{.style = terminal.interactive ? ProgressStyle::kBar : ProgressStyle::kPlain,
                      .terminal = terminal,
                      .first_fraction = fraction_done,
                      .columns = [] { return terminal_columns(STDERR_FILENO); }});
  if (state.step > 0) progress_->note(fmt::format("going on after update {}", state.step));
  if (state.evaluated_step >= 0) valid_loss_ = state.valid_loss;
}

void TrainingLog::noticed(const std::string& what) { warn(what); }

void TrainingLog::updated(const UpdateRecord& record, double fraction_done) {
  progress_->update({.fraction = fraction_done,
                     .step = record.step,
                     .steps = updates_,
                     .loss = record.mean16_loss,
                     .tokens_per_second = record.tokens_per_second,
                     .valid_loss = valid_loss_});
}

void TrainingLog::evaluation_begins(index) { progress_->busy("evaluating"); }

void TrainingLog::evaluated(const EvaluationRecord& record) {
  valid_loss_ = record.valid_loss;
  const bool best = record.valid_loss == record.best_valid_loss;
  progress_->note(fmt::format("update {}: train loss {:.4f}, validation loss {:.4f}{}", record.step,
                              record.train_loss, record.valid_loss,
                              best ? ", the best so far" : ""));
}

void TrainingLog::saved(index, const std::filesystem::path& checkpoint) {
  progress_->note(fmt::format("saved {}", escape_text(checkpoint.string())));
}

Request TrainingLog::request() { return requested(); }

void TrainingLog::finish() {
  if (progress_) progress_->finish();
}

}  // namespace fovea::cli
