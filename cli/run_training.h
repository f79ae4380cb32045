// SPDX-License-Identifier: Apache-2.0
// Shared by all commands "train ...": settings that come from options, the environment and TOML by
// one list of fields; folders and locks, resuming, memory, signals, progress, and output.
#pragma once

#include <fmt/core.h>

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cli/language.h"
#include "cli/options.h"
#include "cli/output.h"
#include "cli/run_folder.h"
#include "fovea/base/words.h"
#include "fovea/task/embeddings.h"
#include "fovea/task/load_parts.h"
#include "fovea/task/run.h"
#include "fovea/task/setting_parts.h"
#include "fovea/text/tokenizer.h"
#include "fovea/train/options.h"
#include "fovea/train/schedule.h"

namespace fovea::cli {

enum class ProgressKind { kAuto, kPlain, kNone };

inline constexpr EnumName<ProgressKind> kProgressKindNames[] = {
    {ProgressKind::kAuto, "auto"}, {ProgressKind::kPlain, "plain"}, {ProgressKind::kNone, "none"}};
inline std::span<const EnumName<ProgressKind>> enum_names(ProgressKind) {
  return kProgressKindNames;
}

struct RunOptions : RunChoices {
  std::string output = {};
  bool json = false;
  ProgressKind progress = ProgressKind::kAuto;
  MessageOptions messages = {};

  template <class Visitor>
  void visit_fields(Visitor&& visit) {
    visit("output", output, "folder of the run and its model",
          {.place = HelpPlace::kOutput, .shown = "DIR", .also = "o"});
    RunChoices::visit_fields(visit);
    visit("json", json, "print the result as one JSON object");
    visit("progress", progress, "how to show progress; auto: a bar on a terminal, else lines");
    messages.visit_fields(under("Messages", visit));
  }
};

/// The options of a training command. `fields` are all that a user can set, those of the nested
/// structs in their order: "text", "model", "recipe" and "run".
std::vector<OptionSpec> training_options(const std::vector<Field>& fields);

/// Sets fields from --config, then the environment, then the options. Paths become absolute, so
/// that a run can be resumed from any folder. Returns the names of the fields that were set.
std::vector<std::string> read_settings(const std::vector<Field>& fields,
                                       const Arguments& arguments);

/// The fields as TOML that --config can read. Throws kOptionValue for a text that is not UTF-8.
std::string settings_toml(const std::vector<Field>& fields);

/// If a run sets --lr but not --min-lr, min_lr follows lr; of a run that is resumed only where it
/// would be above lr. `set`: the names of the fields that were set.
void let_min_lr_follow(TrainOptions& recipe, const std::vector<std::string>& set, bool resumes);

/// The files that the fields name.
std::vector<std::string> paths_in(const std::vector<Field>& fields);

/// A training: settings, data and model. The functions are called in the order in which they stand
/// here.
class Training {
 public:
  virtual ~Training() = default;

  /// "train lm"
  virtual std::string_view command() const = 0;
  /// The options that name the data to train on.
  virtual std::string_view data_options() const { return "--train FILE"; }
  /// The name of a target, once the settings are known: "token".
  virtual std::string_view unit() const = 0;
  /// The name of a row of an update.
  virtual std::string_view row() const { return "token"; }
  /// Whether it solves a problem in one piece, without updates and checkpoints.
  virtual bool solves() const { return false; }
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
  virtual Precision precision() const = 0;
  /// The settings, checked, as TOML.
  virtual std::string toml(const RunOptions& run) const = 0;

  /// Whether settings are searched for before the data are read for the training.
  virtual bool searches() const { return false; }
  /// Reads the data for the search.
  virtual void prepare_search() {}
  /// Searches; the settings are then those that were chosen. Returns what to say of it, or nothing
  /// if it was interrupted.
  virtual std::optional<std::string> search(const Context&, const std::filesystem::path& /*folder*/,
                                            bool /*resume*/, TrainingObserver&) {
    return "";
  }

  /// Reads the data. Returns what a user may want to know. Throws if they are not those of the
  /// stored run.
  virtual std::vector<std::string> prepare(const StoredRun* stored) = 0;
  /// The summary of the data, a line each: shown before the training, but not with --quiet.
  virtual std::vector<std::string> overview() const { return {}; }
  /// Warnings about what has been trained, a line each.
  virtual std::vector<std::string> findings() const { return {}; }
  /// For --verbose: the data and the model, a line each.
  virtual std::vector<std::string> description() const = 0;
  virtual RunCost cost() const = 0;
  /// FLOPs of the mean update.
  virtual double update_flops(const Context& context) const = 0;
  /// Bytes at the peak; `checkpoint_bytes` of what is held now are freed before.
  virtual double memory(const Context& context, index checkpoint_bytes) const = 0;
  /// The option without which the run would need less than half of that memory; "" if there is none
  /// but those of the size of model and batch.
  virtual std::string_view largest_option(const Context& context, index checkpoint_bytes) = 0;
  /// The options of the size of model and batch, as a list in words.
  virtual std::string_view sizes() const = 0;
  virtual RunTime time(const Context& context, const RunState& done) const = 0;
  virtual TrainResult train(const Context& context, const std::filesystem::path& folder,
                            StartAt start, TrainingObserver& observer) const = 0;
};

/// The contents of a tokenizer's file of the stored run; nothing if there is no run. Throws
/// kModelDamaged, kModelMissing.
std::optional<TokenizerData> tokenizer_data_of(const StoredRun* stored,
                                               std::string_view file = "tokenizer.txt");
/// The tokenizer in a file of the stored run; null if there is no run. Throws kModelDamaged,
/// kModelMissing.
std::unique_ptr<Tokenizer> tokenizer_of(const StoredRun* stored,
                                        std::string_view file = "tokenizer.txt");

/// Whether the weights of a run are those of a checkpoint.
inline RunWeights weights_of(const StoredRun* stored) {
  return stored != nullptr && stored->checkpoint ? RunWeights::kStored : RunWeights::kNew;
}

/// How much a batch holds: texts or, of a translator, tokens.
template <class Text>
index batch_of(const Text& text) {
  if constexpr (requires { text.batch_tokens; }) {
    return text.batch_tokens;
  } else {
    return text.batch_size;
  }
}

/// All options of a training: the settings of the model and its recipe, and how this process is
/// run. `presets` are those of RunChoices.
template <class Settings, std::string (*presets)()>
struct TrainingOptions {
  Settings settings = {};
  RunOptions run = {{.presets = presets}};

  template <class Visitor>
  void visit_fields(Visitor&& visit) {
    settings.visit_fields(visit);
    visit("run", run, "how this process is run");
  }

  std::vector<Field> settable_fields() { return settable(fields_of(*this)); }
  /// Sets them from --config, the environment and the options; returns the names of those set.
  std::vector<std::string> read(const Arguments& arguments) {
    return read_settings(settable_fields(), arguments);
  }
};

/// The settings of a training that the user gave.
struct Said {
  std::vector<std::string> set = {};  ///< the names of the fields
  bool resumes = false;               ///< a run that has these settings stored
  bool has_preset = false;

  bool has(std::string_view field) const { return contains(set, field); }
};

/// Shared by trainings of all kinds of model: their options, and messages on their settings and
/// their data. make_run() makes `Run` from `Settings`.
template <class Settings, class Run, std::string (*presets)() = nullptr>
class TrainingOf : public Training {
 public:
  using Options = TrainingOptions<Settings, presets>;

  std::vector<OptionSpec> options() const override {
    Options defaults{.settings = this->defaults()};
    std::vector<Field> fields = defaults.settable_fields();
    std::erase_if(fields, [this](const Field& field) { return hides(field); });
    return training_options(fields);
  }

  RunOptions run_options(const Arguments& arguments) const override {
    Options options;
    options.run.lang = language();
    options.read(arguments);
    return options.run;
  }

  std::vector<std::string> input_files() const override {
    Settings settings = settings_;
    std::vector<std::string> files = paths_in(fields_of(settings));
    if constexpr (requires { bases_of(settings.from); }) {  // those of a base are read, too
      for (const auto& base : bases_of(settings.from)) files.push_back(base.string());
    }
    return files;
  }

  Precision precision() const override { return settings_.recipe.precision; }

  std::vector<std::string> settle(const Arguments& arguments, const RunOptions& run,
                                  const StoredRun* stored) override {
    if (stored == nullptr) {
      Options options{.settings = defaults()};
      options.read(arguments);
      settings_ = changed(usual(options.settings), arguments, run);
      return {};
    }
    begin(*stored);
    settings_ = changed(began_, arguments, run);
    if constexpr (requires { keep_found(settings_.text, began_.text); }) {
      keep_found(settings_.text, began_.text);
    }
    require_same_run(began_, settings_);
    return changed_options(began_, settings_);
  }

  std::string toml(const RunOptions& run) const override {
    check_options(settings_);
    Options options{.settings = settings_, .run = run};
    return settings_toml(options.settable_fields());
  }

  std::vector<std::string> prepare(const StoredRun* stored) override {
    if (!has_data()) {
      throw Error(ErrorCode::kUsage, fmt::format("{}: no text to train on", command()),
                  fmt::format("name a file: {}", data_options()));
    }
    run_ = make_run(stored);
    std::vector<std::string> notes = run_.notes;
    if (run_.settings.recipe.evaluate_training && !run_.validation) {
      throw Error(
          ErrorCode::kUsage,
          std::string(command()) + ": --evaluate-training has no effect without a validation",
          "hold back a part of the data, by --valid or --valid-fraction");
    }
    if (stored != nullptr && stored->checkpoint) {
      require_same_text(began_, identity_of(*stored->checkpoint), run_);
      run_.identity.model_before =
          stored_model_fingerprint(stored->file("config.json"), stored->path("config.json"));
      const std::string jump = schedule_jump(state_of(*stored->checkpoint));
      if (!jump.empty()) notes.push_back(jump);
    }
    return notes;
  }

  RunCost cost() const override { return cost_of(run_); }
  double update_flops(const Context& context) const override {
    return flops_of_update(context, run_);
  }
  double memory(const Context& context, index checkpoint_bytes) const override {
    return training_memory(context, run_, checkpoint_bytes);
  }
  std::string_view largest_option(const Context& context, index checkpoint_bytes) override {
    const double all = memory(context, checkpoint_bytes);
    const auto takes_half = [&](auto change) {
      Settings given = run_.settings;
      change(run_.settings);
      const double rest = memory(context, checkpoint_bytes);
      run_.settings = std::move(given);
      return rest < all / 2;
    };
    if (takes_half([](Settings& s) { s.recipe.observe_every = 0; })) return "--observe-every";
    if (takes_half([](Settings& s) { s.model.position_max = 0; })) return "--position-max";
    if (takes_half([](Settings& s) { s.model.shaw_clip = 1; })) return "--shaw-clip";
    return {};
  }
  RunTime time(const Context& context, const RunState& done) const override {
    return estimate_run_time(context, run_, done);
  }

 protected:
  /// The run of the settings, with the vocabulary of the stored one.
  virtual Run make_run(const StoredRun* stored) const = 0;
  virtual bool has_data() const { return !settings_.text.train.empty(); }

  /// The settings of a config.json; `name` is for messages.
  virtual Settings settings_in(const std::string& config, const std::string& name) = 0;
  /// The settings that help shows, and those of a new run of which the user said `given`.
  virtual Settings defaults() const { return {}; }
  virtual Settings usual(const Settings& /*given*/) const { return defaults(); }
  /// Whether help leaves out the option of a field.
  virtual bool hides(const Field&) const { return false; }
  /// Fills in what follows from what the user said. Throws for what does not go together.
  virtual void complete(Settings&, const Said&) const {}

  Settings began_, settings_;  // of the stored run, and of this one
  Run run_;

 private:
  // These settings, changed by the preset, --config, the environment and the options; later ones
  // override earlier ones.
  Settings changed(Settings begin, const Arguments& arguments, const RunOptions& run) const {
    Options options{.settings = std::move(begin)};
    if constexpr (presets != nullptr) {
      if (!run.preset.empty()) apply_preset(run.preset, options.settings);
    }
    Said said{.resumes = arguments.has("resume"), .has_preset = !run.preset.empty()};
    said.set = options.read(arguments);
    let_min_lr_follow(options.settings.recipe, said.set, said.resumes);
    complete(options.settings, said);
    return std::move(options.settings);
  }

  // Takes what a stored run began with. Throws kModelDamaged for what no run begins with:
  // config.json may have been changed together with its checksum.
  void begin(const StoredRun& stored) {
    const std::string name = stored.path("config.json");
    began_ = settings_in(stored.file("config.json"), name);
    check_stored(name, [&] {
      check_options(began_);
      resolve(began_.model);
    });
  }

  // A warning if changed options change the learning rate. There is none for a run in epochs if the
  // batch size changed: the number of updates of an old epoch is not known then.
  std::string schedule_jump(const RunState& state) const {
    const Settings &was = began_, &is = run_.settings;
    const bool same_epochs =
        batch_of(was.text) == batch_of(is.text) && was.recipe.accumulate == is.recipe.accumulate;
    if (!same_epochs && was.recipe.stop_after.ends_with('e')) return {};
    return schedule_change(was.recipe, is.recipe, run_.training->updates_per_epoch(), state);
  }
};

/// Such a training of a model whose words may start with the vectors of a file (--embeddings).
template <class Settings, class Run>
class TrainingWithVectors : public TrainingOf<Settings, Run> {
 public:
  std::vector<std::string> overview() const override { return this->run_.overview; }

 protected:
  /// Takes what else a config.json holds.
  template <class ConfigFile>
  Settings settings_of_file(ConfigFile file) {
    vectors_ = file.outputs.vectors;
    return std::move(file.settings);
  }

  /// Weights that are stored need no vectors of a file.
  virtual Run run_with(const StoredRun* stored, RunWeights weights) const = 0;

  /// "3 updates an epoch"
  std::string updates() const {
    const index updates = this->run_.training->updates_per_epoch();
    return std::to_string(updates) + (updates == 1 ? " update" : " updates") + " an epoch";
  }

 private:
  Run make_run(const StoredRun* stored) const override {
    const RunWeights weights = weights_of(stored);
    Run run = run_with(stored, weights);
    if (weights == RunWeights::kStored) run.outputs.vectors = vectors_;
    return run;
  }

  VectorCounts vectors_;  // of the stored run
};

/// The text of --help below the options of a training: examples, then `data`, the files that it
/// reads, then the part on folders, settings and signals that all trainings share. `defaults`, if
/// there are any, are options: `when` says where they hold.
struct TrainingHelp {
  std::string_view examples;
  std::string_view data = {};
  std::string_view settings_from = "defaults, --config, the environment";
  std::string_view when = {};
  std::vector<std::string> defaults = {};
};
std::string epilog_of(const TrainingHelp& help);

/// The options whose defaults in `other` are not those in `usual`, with these, but for that of the
/// field `but`: "--pooling attention", "--no-tie".
template <class Settings>
std::vector<std::string> other_defaults(Settings usual, Settings other, std::string_view but) {
  const std::vector<Flag> before = flags_of(settable(fields_of(usual))),
                          after = flags_of(settable(fields_of(other)));
  std::vector<std::string> changed;
  for (std::size_t n = 0; n < before.size(); ++n) {
    const auto& [name, is] = std::pair(after[n].name, after[n].default_text);
    if (name == but || before[n].default_text == is) continue;
    changed.push_back(after[n].kind == FlagKind::kSwitch
                          ? fmt::format("--{}{}", is == "true" ? "" : "no-", name)
                          : fmt::format("--{} {}", name, is));
  }
  return changed;
}

/// Runs a training. Returns the exit status.
int run_training(Training& training, const Arguments& arguments);

/// The command of a training.
template <class Task>
Command training_command(std::string summary, std::string epilog) {
  const Task task;
  return {.name = std::string(task.command()),
          .summary = std::move(summary),
          .options = task.options(),
          .epilog = std::move(epilog),
          .run = [](const Arguments& arguments) {
            Task training;
            return run_training(training, arguments);
          }};
}

}  // namespace fovea::cli
