// SPDX-License-Identifier: Apache-2.0
// The page of a run: its data, collected from its folder (report/run_report.h), and the page while
// it trains.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "fovea/base/file.h"
#include "fovea/report/html.h"
#include "fovea/report/run_report.h"
#include "fovea/train/trainer.h"

namespace fovea {

/// The report on the folder of a run, a model or a checkpoint. Parts that the folder does not hold,
/// such as the history of a copied model, are empty. `name` is escaped. Computes nothing and reads
/// no weights. Throws kModelMissing if the folder is none of these, kModelDamaged for a config.json
/// that cannot be read; lines of metrics.jsonl that cannot be read are counted in the notes.
RunReport report_of_run(const std::filesystem::path& folder, const std::string& name);

/// The page in the folder of a run.
inline constexpr std::string_view kReportName = "report.html";

/// Hands the events of a training on, and meanwhile keeps `folder`/report.html: written when the
/// training begins, after evaluations and checkpoints, now and then between them, and by finish(),
/// each time whole (write_file_atomically). At most every two seconds, and so rarely that it takes
/// at most a fiftieth of the time. A page that cannot be written is noticed once; the training goes
/// on.
class LivePage final : public TrainingObserver {
 public:
  LivePage(TrainingObserver& next, std::filesystem::path folder, PageLanguage language);

  void begins(const RunState& state) override;
  void noticed(const std::string& what) override { next_.noticed(what); }
  void told(const std::string& what) override { next_.told(what); }
  void updated(const UpdateRecord& record, double fraction_done) override;
  void works(std::string_view what, double fraction_done) override {
    next_.works(what, fraction_done);
  }
  void evaluation_begins(index step) override { next_.evaluation_begins(step); }
  void evaluated(const EvaluationRecord& record) override;
  void measured(const MetricsRecord& record) override { next_.measured(record); }
  void saved(index step, const std::filesystem::path& checkpoint) override;
  Request request() override { return next_.request(); }

  /// The last page: it says that the training does not go on.
  void finish();

 private:
  void draw_if_due(double least_seconds);
  void draw(bool is_running);

  TrainingObserver& next_;
  const std::filesystem::path folder_;
  const HeldFolder held_;
  const PageLanguage language_;
  double drawn_ = 0;  // clock, when the last page was ready
  double cost_ = 0;   // its seconds
  bool has_failed_ = false;
};

}  // namespace fovea
