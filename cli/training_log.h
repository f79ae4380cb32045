// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cli/train_options.h"
#include "fovea/report/progress.h"
#include "fovea/train/trainer.h"

namespace fovea::cli {

/// What is said while a model is trained: on stderr a bar, or plain lines, one at most every ten
/// seconds; in the log, if there is one, the lines.
class TrainingLog final : public TrainingObserver {
 public:
  /// `updates` of the whole run; 0: not known.
  TrainingLog(index updates, ProgressKind kind) : updates_(updates), kind_(kind) {}
  ~TrainingLog() override;

  void begins(const RunState& state) override;
  void noticed(const std::string& what) override;
  void updated(const UpdateRecord& record, double fraction_done) override;
  void evaluation_begins(index step) override;
  void evaluated(const EvaluationRecord& record) override;
  void saved(index step, const std::filesystem::path& checkpoint) override;
  Request request() override;

  void finish();

 private:
  void note(const std::string& line);

  const index updates_;
  const ProgressKind kind_;
  std::vector<Progress> shown_;  // on stderr, and in the log
  std::optional<ValidLoss> valid_;
};

}  // namespace fovea::cli
