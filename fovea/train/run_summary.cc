// SPDX-License-Identifier: Apache-2.0
#include "fovea/train/run_summary.h"

#include "fovea/base/error.h"
#include "fovea/train/history.h"
#include "fovea/train/model_folder.h"
#include "fovea/train/trainer.h"

namespace fovea {

namespace {

namespace fs = std::filesystem;

// Reads only the state of the checkpoint, not weights and moments, which may be large.
RunSummary summary_of_checkpoint(const fs::path& folder) {
  const std::string name = "state.json";
  Checkpoint checkpoint{.step = 0, .path = folder, .files = {}};
  checkpoint.files.push_back({name, read_model_file(folder, name)});
  const RunState state = state_of(checkpoint);
  RunSummary summary{.step = state.step, .tokens = state.tokens, .seconds = state.seconds};
  if (state.tokens > 0) summary.train_loss = state.recent_train_loss();
  if (state.evaluated_step >= 0) summary.valid_loss = state.valid_loss;
  if (state.best_step >= 0) summary.best_valid_loss = state.best_valid_loss;
  summary.valid_step = state.evaluated_step;
  summary.best_step = state.best_step;
  return summary;
}

// The summary of the newest checkpoint that can be read.
RunSummary summary_of_checkpoints(const fs::path& folder) {
  std::vector<index> steps = checkpoint_steps(folder);
  for (; !steps.empty(); steps.pop_back()) {
    try {
      return summary_of_checkpoint(checkpoint_path(folder, steps.back()));
    } catch (const Error& error) {
      if (error.code() == ErrorCode::kOutOfMemory) throw;  // the checkpoint may be intact
    }
  }
  return {};
}

void add_records(const HistoryRecords& records, RunSummary& summary) {
  if (!records.updates.empty() && records.updates.back().step > summary.step) {
    const UpdateRecord& last = records.updates.back();
    summary.step = last.step;
    summary.tokens = last.tokens;
    summary.seconds = last.seconds;
    summary.train_loss = last.running_loss;
  }
  for (const EvaluationRecord& record : records.evaluations) {
    if (record.step > summary.valid_step) {
      summary.valid_step = record.step;
      summary.valid_loss = record.valid_loss;
    }
    if (record.is_best) {
      summary.best_step = record.step;
      summary.best_valid_loss = record.valid_loss;
    }
  }
  for (const MetricsRecord& record : records.metrics) {
    if (record.step == summary.valid_step) summary.valid_metrics = record.values;
    if (record.step == summary.best_step) summary.best_valid_metrics = record.values;
  }
}

}  // namespace

RunSummary run_summary(const fs::path& folder) {
  if (read_manifest(folder).kind == "checkpoint") return summary_of_checkpoint(folder);
  return run_summary(folder, read_history(folder / "metrics.jsonl"));
}

RunSummary run_summary(const fs::path& folder, const HistoryRecords& records) {
  RunSummary summary = summary_of_checkpoints(checkpoints_of(folder));
  add_records(records, summary);
  return summary;
}

}  // namespace fovea
