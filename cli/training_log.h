// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "fovea/report/progress.h"
#include "fovea/train/trainer.h"

namespace fovea::cli {

/// What is said on stderr while a model is trained: a bar on a terminal; elsewhere plain lines, one
/// at most every ten seconds.
class TrainingLog final : public Observer {
 public:
  /// `updates` of the whole run; 0: not known.
  explicit TrainingLog(index updates) : updates_(updates) {}
  ~TrainingLog() override { finish(); }

  void begins(const RunState& state, double fraction_done) override;
  void noticed(const std::string& what) override;
  void updated(const UpdateRecord& record, double fraction_done) override;
  void evaluation_begins(index step) override;
  void evaluated(const EvaluationRecord& record) override;
  void saved(index step, const std::filesystem::path& checkpoint) override;
  Request request() override;

  void finish();

 private:
  const index updates_;
  std::optional<Progress> progress_;
  std::optional<double> valid_loss_;
};

}  // namespace fovea::cli
