// SPDX-License-Identifier: Apache-2.0
// fovea inspect: shows what a model folder holds, and whether it is intact.
#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "cli/commands.h"
#include "cli/output.h"
#include "cli/train_report.h"
#include "fovea/base/check.h"
#include "fovea/config/field.h"
#include "fovea/config/json.h"
#include "fovea/report/progress.h"
#include "fovea/task/classify/classifier.h"
#include "fovea/task/classify/vectors.h"
#include "fovea/task/language_model/language_model.h"
#include "fovea/task/model_kind.h"
#include "fovea/task/tag/tagger.h"
#include "fovea/task/translate/translator.h"
#include "fovea/text/utf8.h"
#include "fovea/train/average.h"
#include "fovea/train/model_folder.h"
#include "fovea/train/run_summary.h"
#include "fovea/train/stop_after.h"

namespace fovea::cli {

namespace {

namespace fs = std::filesystem;

std::vector<fs::path> checkpoints_in(const fs::path& folder) {
  std::vector<fs::path> found;
  const fs::path checkpoints = checkpoints_of(folder);
  for (const index step : checkpoint_steps(checkpoints)) {
    found.push_back(checkpoint_path(checkpoints, step));
  }
  return found;
}

struct CheckedFile {
  std::string path;
  std::string problem;
  bool to_come = false;

  template <class Visitor>
  void visit_fields(Visitor&& visit) {
    visit("path", path, "of the file");
    visit("problem", problem, "what is wrong with it; empty: nothing");
    visit("to_come", to_come, "weights that the training has not saved yet");
  }
};

// Appends the files of a folder, each with its problem, if any.
void add(const fs::path& folder, const std::vector<FileCheck>& checks,
         std::vector<CheckedFile>& files) {
  for (const FileCheck& check : checks) {
    files.push_back({(folder / check.name).string(), check.problem, check.to_come});
  }
}

std::string_view state_of(const CheckedFile& file) {
  if (file.to_come) return "to come";
  return file.problem.empty() ? "whole  " : "DAMAGED";
}

void print_files(const std::vector<CheckedFile>& files, bool json) {
  if (json) {
    Json::Array list;
    for (const CheckedFile& file : files) list.push_back(json_of(file));
    Json::Object object;
    object.emplace_back("files", std::move(list));
    print(Json(std::move(object)).line() + "\n");
    return;
  }
  for (const CheckedFile& file : files) {
    print(fmt::format("{}  {}\n", state_of(file), file.path));
    if (!file.problem.empty()) warn(file.problem);
  }
}

// The contents of config.json for each kind of model.
struct LanguageModelFile {
  static constexpr std::string_view kName = "language model", kKind = "language_model";
  static LanguageModelSettings settings_of(const fs::path& folder) { return load_settings(folder); }
  static std::string targets_of(const LanguageModelSettings&) { return "target tokens"; }
};
struct ClassifierFile {
  static constexpr std::string_view kName = "classifier", kKind = kClassifierKind;
  static ClassifierConfigFile read(const fs::path& folder) {
    return classifier_config_from_text(read_model_file(folder, "config.json"),
                                       (folder / "config.json").string());
  }
  static ClassifierSettings settings_of(const fs::path& folder) { return read(folder).settings; }
  static std::string targets_of(const ClassifierSettings& settings) {
    return std::string(words_of(settings.text.input).entry) + "s";
  }
};

struct TaggerFile {
  static constexpr std::string_view kName = "tagger", kKind = kTaggerKind;
  static TaggerConfigFile read(const fs::path& folder) {
    return tagger_config_from_text(read_model_file(folder, "config.json"),
                                   (folder / "config.json").string());
  }
  static TaggerSettings settings_of(const fs::path& folder) { return read(folder).settings; }
  static std::string targets_of(const TaggerSettings& settings) {
    return settings.text.task == TagTask::kSegment ? "characters" : "words";
  }
};

struct TranslatorFile {
  static constexpr std::string_view kName = "translator", kKind = kTranslatorKind;
  static TranslatorSettings settings_of(const fs::path& folder) {
    return translator_settings_from_text(read_model_file(folder, "config.json"),
                                         (folder / "config.json").string());
  }
  static std::string targets_of(const TranslatorSettings&) { return "target tokens"; }
};

// The settings of the newest checkpoint that can be read, or else of the folder.
template <class File>
auto newest_settings(const fs::path& folder, std::vector<fs::path> checkpoints) {
  for (; !checkpoints.empty(); checkpoints.pop_back()) {
    try {
      return File::settings_of(checkpoints.back());
    } catch (const Error& error) {
      if (error.code() == ErrorCode::kOutOfMemory) throw;
      if (fs::exists(checkpoints.back())) warn(error.what());
    }
  }
  return File::settings_of(folder);
}

// Prints the settings with which a run began, and those that changed when it was resumed.
template <class Settings>
void describe_settings(Settings began, Settings now) {
  const std::vector<Field> before = fields_of(began), after = fields_of(now);
  for (std::size_t i = 0; i < before.size(); ++i) {
    const std::string was = value_text(before[i]), is = value_text(after[i]);
    print(fmt::format("  {:<24} {}{}\n", before[i].name, was,
                      was == is ? "" : fmt::format(", since it was resumed {}", is)));
  }
}

// A model folder, without the values of the weights.
struct Model {
  fs::path folder;
  Safetensors weights;  // read first: it fails clearly if the folder is no model
  ModelKind kind;
  std::vector<fs::path> checkpoints;
  RunSummary training;

  explicit Model(const fs::path& where)
      : folder(where),
        weights(read_model_weights(where)),
        kind(kind_of_model(where)),
        checkpoints(checkpoints_in(where)),
        training(run_summary(where)) {}

  index parameters() const {
    index all = 0;
    for (const NamedTensor& named : weights.tensors) all += named.tensor.size();
    return all;
  }
  // The update of the weights; -1 if it is not recorded.
  index step() const {
    if (const auto update = update_of(weights, folder)) return *update;
    const Manifest manifest = read_manifest(folder);
    return manifest.kind == "checkpoint" ? manifest.step : -1;
  }
};

// "500 of 2000 updates (25%)". For a length in epochs or hours the number of updates is not known
// here.
std::string how_far(index step, const std::string& stop_after) {
  const Length length = parse_length(stop_after, "stop_after");
  if (length.unit != LengthUnit::kUpdates) {
    return fmt::format("{} updates (--stop-after {})", step, stop_after);
  }
  return fmt::format("{} of {:.0f} updates ({:.0f}%)", step, length.value,
                     std::floor(100 * static_cast<double>(step) / length.value));
}

void describe_training(const Model& model, const std::string& stop_after,
                       std::string_view targets) {
  const RunSummary& run = model.training;
  if (run.step == 0) return;
  print(fmt::format("training: {}, {} {}, {}\n", how_far(run.step, stop_after), run.tokens, targets,
                    format_duration(run.seconds)));
  if (run.best_step >= 0) {
    print(fmt::format("  {}, at update {}\n",
                      validation_text("best", run.best_valid_loss, run.best_valid_metrics),
                      run.best_step));
  }
  if (run.valid_step >= 0) {
    print(fmt::format("  {}, at update {}\n",
                      validation_text("last", run.valid_loss, run.valid_metrics), run.valid_step));
  }
  print(fmt::format("  last train loss {:.4f}\n", run.train_loss));
}

// Prints the outputs of a classifier: its task and its labels.
void describe_outputs(const fs::path& folder) {
  const ClassifierConfigFile file = ClassifierFile::read(folder);
  const ClassifierConfig& model = file.settings.model;
  const InputWords words = words_of(file.settings.text.input);
  print(fmt::format("task: {}, {} {}, {}s of at most {} {}s\n", to_string(model.task),
                    model.classes,
                    model.task == ClassifierTask::kMultiLabel   ? "labels"
                    : model.task == ClassifierTask::kRegression ? "number"
                                                                : "classes",
                    words.entry, file.settings.text.max_length, words.row));
  if (const VectorCounts& vectors = file.outputs.vectors; vectors.words > 0) {
    print(vectors_line(vectors, file.settings.text.embeddings) +
          (model.freeze_embeddings ? "; the table is frozen\n" : "\n"));
  }
  for (const std::string& label : file.outputs.labels) {
    print(fmt::format("  label {}\n", escape_text(label)));
  }
}

void describe_column(const TaggerConfigFile& file, const TagSet& tags, std::size_t column) {
  print(fmt::format("{} tags, scheme {}, head {}\n", tags.size(),
                    to_string(scheme_of_column(file.settings.text, column)),
                    to_string(head_of(file.settings.model, column))));
}

// Prints the outputs of a tagger: its task and its tags.
void describe_tags(const fs::path& folder) {
  const TaggerConfigFile file = TaggerFile::read(folder);
  const TaggerSettings& settings = file.settings;
  const std::vector<TagSet> sets = tag_sets(file, (folder / "config.json").string());
  const std::vector<std::string> names = column_names(settings.text);
  print(fmt::format("task: {}, ", to_string(settings.text.task)));
  sets.size() == 1 ? describe_column(file, sets[0], 0)
                   : void(print(fmt::format("{} tag columns\n", sets.size())));
  if (const VectorCounts& vectors = file.outputs.vectors; vectors.words > 0) {
    print(vectors_line(vectors, settings.text.embeddings) +
          (settings.model.freeze_embeddings ? "; the table is frozen\n" : "\n"));
  }
  for (std::size_t c = 0; c < sets.size(); ++c) {
    if (sets.size() > 1) {
      print(fmt::format("column {}: ", names[c]));
      describe_column(file, sets[c], c);
    }
    for (const std::string& tag : sets[c].names()) {
      print(fmt::format("  tag {}\n", escape_text(tag)));
    }
  }
}

template <class File>
void describe(const Model& model) {
  print(fmt::format("{}, {} parameters in {} tensors", File::kName, model.parameters(),
                    model.weights.tensors.size()));
  print(model.step() < 0 ? "\n" : fmt::format(", of update {}\n", model.step()));
  if constexpr (std::is_same_v<File, ClassifierFile>) describe_outputs(model.folder);
  if constexpr (std::is_same_v<File, TaggerFile>) describe_tags(model.folder);
  const auto now = newest_settings<File>(model.folder, model.checkpoints);
  describe_training(model, now.recipe.stop_after, File::targets_of(now));
  describe_settings(File::settings_of(model.folder), now);
  for (const NamedTensor& named : model.weights.tensors) {
    print(fmt::format("  {:<48} {}\n", named.name, named.tensor.describe()));
  }
  for (const fs::path& checkpoint : model.checkpoints) {
    print(fmt::format("checkpoint {}\n", checkpoint.string()));
  }
}

Json json_of_tensor(const NamedTensor& named) {
  const Shape& shape = named.tensor.shape();
  Json::Object object;
  object.emplace_back("name", named.name);
  object.emplace_back("type", to_string(named.tensor.dtype()));
  object.emplace_back("shape", Json::Array(shape.begin(), shape.end()));
  return object;
}

// "tags"; of several columns "columns", each with its name, scheme, head and tags.
void add_tags(Json::Object& object, const TaggerConfigFile& file, const std::string& name) {
  const std::vector<TagSet> sets = tag_sets(file, name);
  const auto list = [](const TagSet& tags) {
    return Json::Array(tags.names().begin(), tags.names().end());
  };
  if (sets.size() == 1) {
    object.emplace_back("tags", list(sets[0]));
    return;
  }
  const std::vector<std::string> names = column_names(file.settings.text);
  Json::Array columns;
  for (std::size_t c = 0; c < sets.size(); ++c) {
    Json::Object column;
    column.emplace_back("column", names[c]);
    column.emplace_back("scheme", to_string(scheme_of_column(file.settings.text, c)));
    column.emplace_back("head", to_string(head_of(file.settings.model, c)));
    column.emplace_back("tags", list(sets[c]));
    columns.emplace_back(std::move(column));
  }
  object.emplace_back("columns", std::move(columns));
}

template <class File>
void describe_as_json(const Model& model) {
  Json::Array tensors, checkpoints;
  for (const NamedTensor& named : model.weights.tensors) tensors.push_back(json_of_tensor(named));
  for (const fs::path& checkpoint : model.checkpoints) checkpoints.push_back(checkpoint.string());
  Json::Object object;
  object.emplace_back("kind", File::kKind);
  object.emplace_back("parameters", model.parameters());
  object.emplace_back("step", model.step());
  Json::Object training = json_of(model.training).object();
  add_metrics(training, model.training);
  object.emplace_back("training", std::move(training));
  object.emplace_back("settings", json_of(newest_settings<File>(model.folder, model.checkpoints)));
  if constexpr (std::is_same_v<File, ClassifierFile>) {
    ClassifierOutputs outputs = File::read(model.folder).outputs;
    object.emplace_back("labels", Json::Array(outputs.labels.begin(), outputs.labels.end()));
    object.emplace_back("embeddings", json_of(outputs.vectors));
  }
  if constexpr (std::is_same_v<File, TaggerFile>) {
    const TaggerConfigFile file = File::read(model.folder);
    add_tags(object, file, (model.folder / "config.json").string());
    object.emplace_back("embeddings", json_of(file.outputs.vectors));
  }
  object.emplace_back("tensors", std::move(tensors));
  object.emplace_back("checkpoints", std::move(checkpoints));
  print(Json(std::move(object)).line() + "\n");
}

template <class File>
void describe(const Model& model, bool json) {
  json ? describe_as_json<File>(model) : describe<File>(model);
}

void describe_kind(const Model& model, bool json) {
  switch (model.kind) {
    case ModelKind::kLanguageModel:
      return describe<LanguageModelFile>(model, json);
    case ModelKind::kClassifier:
      return describe<ClassifierFile>(model, json);
    case ModelKind::kTagger:
      return describe<TaggerFile>(model, json);
    case ModelKind::kTranslator:
      return describe<TranslatorFile>(model, json);
  }
}

}  // namespace

CommandSpec inspect_spec() {
  return {.name = "inspect",
          .summary = "Shows what a model folder holds, and checks it for damage.",
          .positionals = {{"DIR", "folder of the model, or a checkpoint"}},
          .options = {{"verify", OptionKind::kFlag, "", "check every byte, checkpoints included",
                       "Options", ""},
                      {"json", OptionKind::kFlag, "", "print the result as one JSON object",
                       "Options", ""}},
          .epilog = R"(Example:
  fovea inspect model --verify)"};
}

int inspect(const Arguments& arguments) {
  const fs::path folder = arguments.text("DIR");
  const bool json = arguments.on("json");
  if (!arguments.on("verify")) {
    const Model model(folder);
    describe_kind(model, json);
    return 0;
  }
  std::vector<CheckedFile> files;
  add(folder, verify_model_folder(folder), files);
  add(folder, verify_best_weights(folder), files);
  for (const fs::path& checkpoint : checkpoints_in(folder)) {
    // A training that goes on removes old checkpoints meanwhile: such a folder was renamed first.
    try {
      const std::vector<FileCheck> checks = verify_model_folder(checkpoint);
      if (fs::exists(checkpoint)) add(checkpoint, checks, files);
    } catch (const Error& error) {
      if (error.code() != ErrorCode::kModelMissing || fs::exists(checkpoint)) throw;
    }
  }
  print_files(files, json);
  const auto damaged = std::count_if(files.begin(), files.end(),
                                     [](const CheckedFile& file) { return !file.problem.empty(); });
  if (damaged == 0) {
    // Throws if no weights have been saved yet.
    if (files.back().to_come) read_model_weights(folder);
    return 0;
  }
  throw Error(ErrorCode::kModelDamaged,
              fmt::format("{}: damaged files: {}", folder.string(), damaged),
              "restore them from a copy; --resume passes over damaged checkpoints");
}

}  // namespace fovea::cli
