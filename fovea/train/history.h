// SPDX-License-Identifier: Apache-2.0
// The measurements of a training run: metrics.jsonl, one JSON object per line.
#pragma once

#include <filesystem>
#include <limits>
#include <string>
#include <vector>

#include "fovea/base/types.h"
#include "fovea/config/json.h"

namespace fovea {

/// Written after an update. It has three training losses, in nats per target: of this update's
/// batch alone; the mean of the last 16 updates; the mean over all targets since the previous
/// evaluation (or since the epoch began). The two means average over updates between which the
/// weights changed. So does the running accuracy, which is NaN, and left out of the file, where an
/// accuracy means nothing.
struct UpdateRecord {
  std::string kind = "update";
  index step = 0;
  double loss = 0;
  double mean16_loss = 0;
  double running_loss = 0;
  double lr = 0;
  double gradient_norm = 0;
  index tokens = 0;
  double tokens_per_second = 0;
  double seconds = 0;
  double seconds_left = 0;
  double running_accuracy = std::numeric_limits<double>::quiet_NaN();

  template <class Visitor>
  void visit_fields(Visitor&& visit) {
    visit("kind", kind, "what was measured");
    visit("step", step, "updates so far");
    visit("loss", loss, "loss of this update's batch");
    visit("mean16_loss", mean16_loss, "mean of the last 16 updates");
    visit("running_loss", running_loss, "mean over targets since the previous evaluation");
    visit("lr", lr, "learning rate");
    visit("gradient_norm", gradient_norm, "global norm of the gradient, before clipping");
    visit("tokens", tokens, "targets trained so far");
    visit("tokens_per_second", tokens_per_second, "of this process, in its updates");
    visit("seconds", seconds, "time so far");
    visit("seconds_left", seconds_left, "estimate until the end of the run");
    visit("running_accuracy", running_accuracy,
          "share of right answers since the previous evaluation");
  }
};

/// Written after an evaluation. The validation loss is exact: over the whole set, with the weights
/// of this step. The training loss is NaN where there are no updates. The accuracy is that of the
/// last running one, or NaN.
struct EvaluationRecord {
  std::string kind = "evaluation";
  index step = 0;
  double train_loss = std::numeric_limits<double>::quiet_NaN();
  double valid_loss = 0;
  double best_valid_loss = 0;
  bool is_best = false;
  double seconds = 0;
  double train_accuracy = std::numeric_limits<double>::quiet_NaN();

  template <class Visitor>
  void visit_fields(Visitor&& visit) {
    visit("kind", kind, "what was measured");
    visit("step", step, "updates so far");
    visit("train_loss", train_loss, "mean over the targets of the last whole window");
    visit("valid_loss", valid_loss, "exact loss of the validation set");
    visit("best_valid_loss", best_valid_loss, "of the best weights so far");
    visit("is_best", is_best, "whether these are the best weights so far");
    visit("seconds", seconds, "time so far");
    visit("train_accuracy", train_accuracy, "share of right answers in the last whole window");
  }
};

/// A number of an evaluation, such as "accuracy".
struct MetricValue {
  std::string name;
  double value = 0;
};

/// Written after an evaluation that measures more than the loss.
struct MetricsRecord {
  index step = 0;  ///< updates so far
  bool is_best = false;
  std::vector<MetricValue> values = {};
};

/// Written after an evaluation, if it was asked for (TrainOptions::evaluate_training): the whole
/// training set with the weights of this step, without dropout, measured as the validation set is.
struct TrainingRecord {
  index step = 0;  ///< updates so far
  double loss = 0;
  std::vector<MetricValue> values = {};
};

/// A number of cross-validation: its mean over the folds with a 95 % interval, and that of each.
struct FoldedMetric {
  std::string name;
  double mean = 0, low = 0, high = 0;
  std::vector<double> folds = {};
};

/// {"mean", "low", "high", "folds"}
Json json_of(const FoldedMetric& metric);

/// Written after a cross-validation whose folds were asked for.
struct FoldsRecord {
  index step = 0;
  std::vector<FoldedMetric> values = {};
};

/// A number for each head: [layers][heads].
using HeadNumbers = std::vector<std::vector<double>>;

/// Written after an update whose attention was observed: what the weights of its batches looked
/// like, before dropout. Entropy and distance exist for softmax only; else they are empty.
struct AttentionRecord {
  index step = 0;              ///< updates so far
  HeadNumbers entropy = {};    ///< mean over the queries, in nats
  HeadNumbers max_logit = {};  ///< the largest score, after bias and mask
  HeadNumbers distance = {};   ///< mean over the queries of sum_j w_ij |p_i - j|, in tokens
};

struct HistoryRecords {
  std::vector<UpdateRecord> updates;
  std::vector<EvaluationRecord> evaluations;
  std::vector<MetricsRecord> metrics;
  std::vector<TrainingRecord> training;
  std::vector<AttentionRecord> attention;
  std::vector<FoldsRecord> folds;
  index unreadable = 0;  ///< lines that were left out, without an incomplete last one
  bool torn = false;     ///< whether the last line is incomplete: it is being written, or was cut
};

/// Reads metrics.jsonl; returns no records if there is no such file. A line that is incomplete or
/// was edited is left out.
HistoryRecords read_history(const std::filesystem::path& file);

/// The records of a run, in memory and, line by line, in a file.
class History {
 public:
  /// Starts an empty file.
  explicit History(std::filesystem::path file);
  /// Goes on after the first `bytes` bytes of the file (fewer if their last line is incomplete);
  /// the rest is cut off. Creates the file if it is missing.
  History(std::filesystem::path file, index bytes);
  ~History();
  History(const History&) = delete;
  History& operator=(const History&) = delete;

  void add(const UpdateRecord& record);
  void add(const EvaluationRecord& record);
  void add(const MetricsRecord& record);
  void add(const TrainingRecord& record);
  void add(const AttentionRecord& record);
  void add(const FoldsRecord& record);
  /// Flushes the file to the disk. Returns its length.
  index flush();
  index bytes() const { return bytes_; }  ///< the length of the file

  const std::vector<UpdateRecord>& updates() const { return records_.updates; }
  const std::vector<EvaluationRecord>& evaluations() const { return records_.evaluations; }
  const std::vector<MetricsRecord>& metrics() const { return records_.metrics; }
  const std::vector<TrainingRecord>& training() const { return records_.training; }
  const std::vector<AttentionRecord>& attention() const { return records_.attention; }

 private:
  void open(int flags);
  void append(const std::string& line);

  std::filesystem::path file_;
  int fd_ = -1;
  index bytes_ = 0;
  HistoryRecords records_;
};

}  // namespace fovea
