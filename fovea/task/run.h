// SPDX-License-Identifier: Apache-2.0
// The runs of all kinds of models: how their processes run, as far as the command and Python say it
// alike, what every kind of data is prepared to, and what a run costs before it begins. How it is
// trained is in run_flow.h.
#pragma once

#include <fmt/format.h>

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "fovea/base/context.h"
#include "fovea/base/fields.h"
#include "fovea/report/html.h"
#include "fovea/text/tokenizer.h"
#include "fovea/text/vocabulary.h"
#include "fovea/train/checkpoint.h"
#include "fovea/train/model_folder.h"
#include "fovea/train/schedule.h"
#include "fovea/train/trainer.h"

namespace fovea {

struct RunChoices {
  /// The names of the presets that the training has, "tiny|small"; none: no --preset.
  std::string (*presets)() = nullptr;
  std::string preset = {};
  std::string config = {};
  int threads = 0;
  bool report = false;
  PageLanguage lang = PageLanguage::kEnglish;
  bool overwrite = false;
  bool final = false;

  template <class Visitor>
  void visit_fields(Visitor&& visit) {
    if (presets != nullptr) {
      visit("preset", preset, "start from these settings instead of the defaults",
            {.place = HelpPlace::kModel, .names = presets});
    }
    visit("config", config, "read settings from this TOML file",
          {.only_command_line = true, .shown = "FILE", .also = "c"});
    visit("threads", threads, "threads to work on; 0: all cores", {.also = "t"});
    visit("overwrite", overwrite, "replace an earlier run in the folder",
          {.only_command_line = true, .place = HelpPlace::kResume});
    visit("final", final,
          "when the run has ended, remove its checkpoints: the folder keeps the model, its metrics "
          "and its page");
    visit("report", report, "keep a page of the run up to date: report.html in its folder");
    visit("lang", lang, "language of the page of --report");
  }
};

/// The cost of a run, computed before it begins.
struct RunCost {
  index parameters = 0;
  index updates = 0;  ///< 0: the run ends by hours
  index tokens_per_update = 0;
};

struct RunTime {
  double seconds = 0;  ///< of updates and evaluations; saves are not counted
  std::string basis;   ///< how it was estimated, for people
};

/// Where the weights of a run come from. kNew: random numbers, a base, a file of word vectors;
/// kStored: a checkpoint.
enum class RunWeights { kNew, kStored };

/// Where a run begins.
struct StartAt {
  bool resume = false;  ///< from the newest intact checkpoint; from update 0 if there is none
  std::optional<Checkpoint> checkpoint = {};  ///< from this one
  Future future = Future::kSame;              ///< see Trainer::resume
};

/// A run that is ready to begin: its data are read, its vocabulary is known, every size is filled
/// in. The run of a kind of model derives from this.
template <class SettingsOfRun, class Training, class Evaluation>
struct PreparedRun {
  SettingsOfRun settings;
  std::vector<std::string> overview;  ///< a summary of the data for people, a line each
  std::vector<std::string> notes;     ///< warnings about them
  std::unique_ptr<Training> training;
  std::optional<Evaluation> validation;
  std::optional<Evaluation> trained;  ///< what is trained on, if it is measured, too
  RunIdentity identity;
};

template <class Run>
concept Prepared = requires(const Run& run) {
  run.settings.recipe;
  run.identity;
};

template <Prepared Run>
RunCost cost_of(const Run& run);

/// FLOPs (multiplications and additions) of the mean update, by a plan of sequences as long as
/// those of the data.
template <Prepared Run>
double flops_of_update(const Context& context, const Run& run);

/// The most bytes that this process will have resident while it trains: what it holds now, and what
/// training, evaluations and saves add. Excludes the records of a run that ends by hours, as their
/// number is not known. `checkpoint_bytes`: the part of the memory held now that is the checkpoint
/// to resume from.
template <Prepared Run>
double training_memory(const Context& context, const Run& run, index checkpoint_bytes = 0);

/// What updates add to what the process holds when they begin, whatever it has held before.
template <Prepared Run>
double added_memory(const Context& context, const Run& run);

/// The updates that are left after `done` of them, plus the evaluations, each counted as the number
/// of updates that take as long.
template <Prepared Run>
double updates_to_come(const Run& run, const RunState& done = {});

/// An estimate of the time that is left after `done`; it takes about half a second. If updates are
/// short and the model is made quickly, some updates of a model of the same shape are timed.
/// Otherwise the time is computed from FLOPs and parameters, with the measured speed of the
/// machine's multiply-adds and memory. A run that ends by hours takes the rest of those.
template <Prepared Run>
RunTime estimate_run_time(const Context& context, const Run& run, const RunState& done = {});

/// The identity that a run must have to be resumed: its model, as config.json has it, and the
/// fingerprints of its data and tokenizer. Says which instructions and which version computed it.
RunIdentity identity_of_run(const std::string& model, std::string data, std::string tokenizer);

/// Learns a tokenizer of this kind; `name` is that of the text in errors.
std::unique_ptr<Tokenizer> learn_tokenizer(std::string_view kind, std::string_view text,
                                           std::string_view name, const LearnOptions& options);

/// Throws kOptionValue unless an update has fewer than 2^31 rows: batches of `batch` sequences of
/// up to `block` tokens, each of them `rows`. `row` is what messages call one.
struct UpdateRows {
  index batch = 0, block = 0, accumulate = 0, rows = 1;
};
void require_update(const UpdateRows& update, std::string_view row, std::string_view hint);

/// Adds a note if the warm-up is long for the run.
template <Prepared Run>
void note_warmup(Run& run) {
  const std::string note = warmup_note(run.settings.recipe.warmup, cost_of(run).updates);
  if (!note.empty()) run.notes.push_back(note);
}

/// Adds a note if there is nothing that `options` could be measured on.
template <Prepared Run>
void note_no_validation(Run& run, std::string_view options) {
  if (run.validation || run.settings.recipe.patience == 0) return;
  run.notes.push_back(fmt::format("there is no validation, so {} no effect", options));
}

}  // namespace fovea
