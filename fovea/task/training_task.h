// SPDX-License-Identifier: Apache-2.0
// Shared by every training: how its process runs, as far as the command and Python say it alike,
// what it costs, and how a run of any kind is trained. model_files(run), make_model(run) and
// make_objective(context, model, run) are those of its task.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "fovea/base/context.h"
#include "fovea/base/fields.h"
#include "fovea/report/html.h"
#include "fovea/text/vocabulary.h"
#include "fovea/train/checkpoint.h"
#include "fovea/train/model_folder.h"
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

/// Where a run begins.
struct StartAt {
  bool resume = false;  ///< from the newest intact checkpoint; from update 0 if there is none
  std::optional<Checkpoint> checkpoint = {};  ///< from this one
  Future future = Future::kSame;              ///< see Trainer::resume
};

/// The files of a model folder and of each checkpoint besides those of numbers.
inline std::vector<NamedFile> first_files(const std::string& config,
                                          const TokenizerData& tokenizer) {
  std::vector<NamedFile> files = {{"config.json", config}, {"tokenizer.txt", to_text(tokenizer)}};
  if (tokenizer.kind == kWordKind) {
    files.push_back({std::string(kWordListName), word_list_text(tokenizer)});
  }
  return files;
}

/// Calls start_with_vectors(model, vectors) of the task if the run has vectors of words.
template <class Model, class Run>
void take_vectors(const Model& model, const Run& run) {
  if constexpr (requires { run.vectors; }) {
    if (run.vectors) start_with_vectors(model, *run.vectors);
  }
}

/// A run with its model, in its folder.
template <class Run>
class RunTraining {
 public:
  /// Writes the files of a new run.
  RunTraining(const Context& context, const Run& run, std::filesystem::path folder, StartAt start)
      : run_(run),
        folder_(std::move(folder)),
        start_(std::move(start)),
        files_(begin()),
        context_(context.with(run.settings.recipe.precision)),
        model_(make_model(run)),
        objective_(make_objective(context_, model_, run)) {
    take_vectors(model_, run);
  }

  auto& objective() { return objective_; }

  /// Trains to the end of the run. The checkpoint to start from, as large as the model and its
  /// moments, is freed before.
  TrainResult train(const TrainOptions& recipe, TrainingObserver& observer) {
    Trainer trainer(
        context_, objective_, observer,
        {.options = recipe, .folder = folder_, .identity = run_.identity, .attachments = files_});
    if (start_.checkpoint) {
      trainer.resume(*start_.checkpoint, start_.future);
      start_.checkpoint.reset();
    } else if (start_.resume) {
      trainer.resume();
    }
    return trainer.run();
  }

 private:
  std::vector<NamedFile> begin() const {
    std::vector<NamedFile> files = model_files(run_);
    if (!start_.resume) write_model_files(folder_, files);
    return files;
  }

  const Run& run_;
  const std::filesystem::path folder_;
  StartAt start_;
  const std::vector<NamedFile> files_;
  const Context context_;
  const decltype(make_model(std::declval<const Run&>())) model_;
  decltype(make_objective(context_, model_, run_)) objective_;
};

}  // namespace fovea
