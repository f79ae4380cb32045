// SPDX-License-Identifier: Apache-2.0
// Identity and state of a run: all that is needed, besides tensors, to resume it exactly, and
// the record of its processes.
#pragma once

#include <filesystem>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "fovea/base/types.h"

namespace fovea {

/// The identity of a run as it was started. To resume, model, data and tokenizer (fingerprints)
/// must be the same; another instruction set or version is only reported. The options may change.
struct RunIdentity {
  std::string model;      ///< of the model's configuration
  std::string data;       ///< of the training text and the validation text
  std::string tokenizer;  ///< of tokenizer.txt
  std::string isa;        ///< the instruction set: another one rounds differently
  std::string version;    ///< of fovea
  /// The kind of products in bfloat16: "pairs" or "converted", which round differently on one
  /// instruction set; empty in float32, and for runs that did not record it.
  std::string products = {};
  /// No field: the same model by the fields that the build knew which began the run, if it knew
  /// fewer. A run with this fingerprint of its model is resumed, too.
  std::string model_before = {};

  template <class Visitor>
  void visit_fields(Visitor&& visit) {
    visit("model", model, "fingerprint of the model's configuration");
    visit("data", data, "fingerprint of the text");
    visit("tokenizer", tokenizer, "fingerprint of the tokenizer");
    visit("isa", isa, "instruction set");
    visit("version", version, "version of fovea");
    visit("products", products, "how bfloat16 is multiplied: pairs or converted");
  }
};

/// The state after `step` updates. Random numbers depend only on the seed and the step, so no
/// generator state is stored.
struct RunState {
  index step = 0;
  index tokens = 0;    ///< targets trained since step 0
  double seconds = 0;  ///< of all processes of this run together

  // The sum of losses since the previous evaluation (the window), and the mean over the last
  // complete window.
  double window_loss = 0;
  index window_tokens = 0;
  double train_loss = 0;
  // Likewise of the targets that an answer was counted for; NaN: none.
  index window_right = 0, window_judged = 0;
  double train_accuracy = std::numeric_limits<double>::quiet_NaN();

  /// The mean training loss since the previous evaluation; right after an evaluation, that of the
  /// window it ended.
  double recent_train_loss() const {
    return window_tokens > 0 ? window_loss / static_cast<double>(window_tokens) : train_loss;
  }

  /// The share of right answers since the previous evaluation; NaN if none was counted.
  double window_accuracy() const {
    return window_judged > 0
               ? static_cast<double>(window_right) / static_cast<double>(window_judged)
               : std::numeric_limits<double>::quiet_NaN();
  }
  /// As recent_train_loss().
  double recent_train_accuracy() const {
    return window_tokens > 0 ? window_accuracy() : train_accuracy;
  }

  index evaluated_step = -1;
  double valid_loss = 0;
  index best_step = -1;
  double best_valid_loss = 0;

  double best_score = std::numeric_limits<double>::quiet_NaN();  ///< Validation::goodness
  index worse_evaluations = 0;                                   ///< since the best one
  index best_kept = 0;  ///< evaluations whose weights the folder `best` held at this step

  index metrics_bytes = 0;  ///< the length of metrics.jsonl at this step
  /// If patience ended the run at this step: that length without the line that only an end has; or
  /// -1.
  index metrics_bytes_to_go_on = -1;

  template <class Visitor>
  void visit_fields(Visitor&& visit) {
    visit("step", step, "updates so far");
    visit("tokens", tokens, "targets trained so far");
    visit("seconds", seconds, "time so far");
    visit("window_loss", window_loss, "sum of losses since the previous evaluation");
    visit("window_tokens", window_tokens, "targets since the previous evaluation");
    visit("train_loss", train_loss, "mean loss of the last whole window");
    visit("window_right", window_right, "targets since the previous evaluation told right");
    visit("window_judged", window_judged, "of so many");
    visit("train_accuracy", train_accuracy, "their share in the last whole window");
    visit("evaluated_step", evaluated_step, "step of the last evaluation; -1: none");
    visit("valid_loss", valid_loss, "its loss");
    visit("best_step", best_step, "step of the best evaluation; -1: none");
    visit("best_valid_loss", best_valid_loss, "its loss");
    visit("best_score", best_score, "what made it the best: larger is better");
    visit("worse_evaluations", worse_evaluations, "evaluations since the best one");
    visit("best_kept", best_kept, "evaluations whose weights are kept in the folder best");
    visit("metrics_bytes", metrics_bytes, "length of metrics.jsonl");
    visit("metrics_bytes_to_go_on", metrics_bytes_to_go_on,
          "what of it a run keeps that ended and goes on; -1: all");
  }
};

/// Adds a line to a file of the run, and flushes it to the disk. A last line that is incomplete, as
/// after a process that was killed, stays a line of its own. Throws kWrite, kDiskFull.
void append_line(const std::filesystem::path& file, std::string_view what);

// The processes of a run: starts.jsonl, one JSON object per line.

inline constexpr std::string_view kStartsName = "starts.jsonl";

/// Written before the first update of a process. A run that was interrupted and goes on has one for
/// each process; they change nothing of its results.
struct ProcessStart {
  index step = 0;
  std::string time = {};
  std::string processor = {};
  int threads = 0;
  std::string isa = {}, version = {};
  std::string model = {}, data = {}, tokenizer = {};

  template <class Visitor>
  void visit_fields(Visitor&& visit) {
    visit("step", step, "updates before it");
    visit("time", time, "when it began: UTC");
    visit("processor", processor, "its name");
    visit("threads", threads, "that it works on");
    visit("isa", isa, "instruction set");
    visit("version", version, "version of fovea");
    visit("model", model, "fingerprint of the model's configuration");
    visit("data", data, "fingerprint of the text");
    visit("tokenizer", tokenizer, "fingerprint of the tokenizer");
  }
};

/// "2026-01-31T23:59:59Z", now.
std::string utc_time();

/// The start of this process, on this machine, now.
ProcessStart start_of_process(index step, int threads, const RunIdentity& identity);

/// Throws kConfig unless model, data and tokenizer are those that the run began with.
void require_same_run(const RunIdentity& began, const RunIdentity& now);

/// Adds a line to the file of the run. Throws kWrite, kDiskFull.
void append_start(const std::filesystem::path& folder, ProcessStart start);

/// The starts of the run in the folder, without those of updates that were given up: a process that
/// goes back to an earlier update does not follow later ones. Lines that cannot be read are left
/// out; without a file there are none.
std::vector<ProcessStart> read_starts(const std::filesystem::path& folder);

}  // namespace fovea
