// SPDX-License-Identifier: Apache-2.0
// What all commands "train ..." do alike: folders and locks, resuming, memory, signals, progress,
// and what is printed.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "cli/run_folder.h"
#include "cli/run_options.h"
#include "fovea/task/training_task.h"

namespace fovea::cli {

/// A training: settings, data and model. The functions are called in the order in which they stand
/// here.
class Training {
 public:
  virtual ~Training() = default;

  /// "train lm"
  virtual std::string_view command() const = 0;
  /// What a target is: "token".
  virtual std::string_view unit() const = 0;
  virtual std::vector<OptionSpec> options() const = 0;
  /// How the process is run, from --config, the environment and the options.
  virtual RunOptions run_options(const Arguments& arguments) const = 0;

  /// Takes all settings: those of the stored run, if there is one, changed by the arguments. Throws
  /// if such a run cannot go on with them. Returns what differs and affects updates, a sentence
  /// each.
  virtual std::vector<std::string> settle(const Arguments& arguments, const RunOptions& run,
                                          const StoredRun* stored) = 0;
  /// The files that the settings name.
  virtual std::vector<std::string> input_files() const = 0;
  /// The settings, checked, as TOML.
  virtual std::string toml(const RunOptions& run) const = 0;

  /// Reads the data. Returns what a user may want to know. Throws if they are not those of the
  /// stored run.
  virtual std::vector<std::string> prepare(const StoredRun* stored) = 0;
  /// What is said before the training in any case, a line each.
  virtual std::vector<std::string> overview() const { return {}; }
  /// For --verbose: the data and the model, a line each.
  virtual std::vector<std::string> description() const = 0;
  virtual RunCost cost() const = 0;
  /// Bytes at the peak; `checkpoint_bytes` of what is held now are freed before.
  virtual double memory(const Context& context, index checkpoint_bytes) const = 0;
  virtual RunTime time(const Context& context, const RunState& done) const = 0;
  virtual TrainResult train(const Context& context, const std::filesystem::path& folder,
                            StartAt start, TrainingObserver& observer) const = 0;
};

/// The command itself. Returns the exit status.
int run_training(Training& training, const Arguments& arguments);

}  // namespace fovea::cli
