// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cli/run_options.h"
#include "fovea/report/progress.h"
#include "fovea/train/trainer.h"

namespace fovea::cli {

/// Shows the progress of a training: on stderr as a bar or as plain lines, at most one every ten
/// seconds; in the log, if there is one, as lines.
class TrainingLog final : public TrainingObserver {
 public:
  /// `updates` of the whole run; 0: not known.
  /// `unit`: what a target is, such as "token".
  TrainingLog(index updates, ProgressKind kind, std::string_view unit)
      : updates_(updates), kind_(kind), unit_(unit) {}
  ~TrainingLog() override;

  void begins(const RunState& state) override;
  void noticed(const std::string& what) override;
  void updated(const UpdateRecord& record, double fraction_done) override;
  void evaluation_begins(index step) override;
  void evaluated(const EvaluationRecord& record) override;
  void measured(const MetricsRecord& record) override;
  void saved(index step, const std::filesystem::path& checkpoint) override;
  Request request() override;

  void finish();

 private:
  void note(const std::string& line);

  const index updates_;
  const ProgressKind kind_;
  const std::string unit_;
  std::vector<Progress> shown_;  // one on stderr, one in the log
  std::optional<ValidLoss> valid_;
};

}  // namespace fovea::cli
