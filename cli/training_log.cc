// SPDX-License-Identifier: Apache-2.0
#include "cli/training_log.h"

#include <fmt/core.h>
#include <unistd.h>

#include <iostream>

#include "cli/output.h"
#include "cli/signals.h"
#include "fovea/text/utf8.h"

namespace fovea::cli {

namespace {

ProgressStyle style_of(ProgressKind kind, const Terminal& terminal) {
  if (quiet() || kind == ProgressKind::kNone) return ProgressStyle::kNone;
  const bool bar = kind == ProgressKind::kAuto && terminal.interactive;
  return bar ? ProgressStyle::kBar : ProgressStyle::kPlain;
}

}  // namespace

void TrainingLog::begins(const RunState& state) {
  const Terminal terminal = message_terminal();
  const ProgressStyle style = style_of(kind_, terminal);
  const auto show = [&](std::ostream& out, ProgressStyle how) {
    shown_.emplace_back(
        out, ProgressOptions{.style = how, .terminal = terminal, .unit = unit_, .columns = [] {
                               return terminal_columns(STDERR_FILENO);
                             }});
  };
  show(std::cerr, style);
  if (std::ostream* log = log_stream()) {
    show(*log, style == ProgressStyle::kNone ? style : ProgressStyle::kPlain);
  }
  if (state.step > 0) note(fmt::format("going on after update {}", state.step));
  if (state.evaluated_step >= 0) valid_ = {state.valid_loss, state.evaluated_step};
}

void TrainingLog::note(const std::string& line) {
  if (quiet()) return;
  for (Progress& progress : shown_) progress.note(line);
}

void TrainingLog::noticed(const std::string& what) { warn(what); }

void TrainingLog::updated(const UpdateRecord& record, double fraction_done) {
  for (Progress& progress : shown_) {
    progress.update({.fraction = fraction_done,
                     .step = record.step,
                     .steps = updates_,
                     .loss = record.mean16_loss,
                     .tokens_per_second = record.tokens_per_second,
                     .seconds_left = record.seconds_left,
                     .valid = valid_});
  }
}

void TrainingLog::evaluation_begins(index) {
  for (Progress& progress : shown_) progress.busy("evaluating");
}

void TrainingLog::evaluated(const EvaluationRecord& record) {
  valid_ = {record.valid_loss, record.step};
  for (Progress& progress : shown_) progress.validated(record.valid_loss);
  note(fmt::format("update {}: validation loss {:.4f}{}; train loss {:.4f}", record.step,
                   record.valid_loss, record.is_best ? ", of the best weights so far" : "",
                   record.train_loss));
}

void TrainingLog::measured(const MetricsRecord& record) {
  std::string line = fmt::format("update {}:", record.step);
  for (const MetricValue& one : record.values) {
    line += fmt::format("{} {} {:.4f}", line.ends_with(':') ? "" : ",", one.name, one.value);
  }
  note(line);
}

void TrainingLog::saved(index, const std::filesystem::path& checkpoint) {
  note(fmt::format("saved {}", escape_text(checkpoint.string())));
}

Request TrainingLog::request() { return requested(); }

void TrainingLog::finish() {
  for (Progress& progress : shown_) progress.finish();
}

// Prints the last line also after an error; a second error is ignored.
TrainingLog::~TrainingLog() {
  try {
    finish();
  } catch (...) {
  }
}

}  // namespace fovea::cli
