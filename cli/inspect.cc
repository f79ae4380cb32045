// SPDX-License-Identifier: Apache-2.0
// fovea inspect: shows what a model folder holds, and whether it is intact.
#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "cli/commands.h"
#include "cli/inspect_pretrained.h"
#include "cli/output.h"
#include "cli/task_commands.h"
#include "cli/train_report.h"
#include "fovea/base/check.h"
#include "fovea/config/field.h"
#include "fovea/config/json.h"
#include "fovea/pretrained/pretrained.h"
#include "fovea/report/progress.h"
#include "fovea/text/utf8.h"
#include "fovea/train/average.h"
#include "fovea/train/model_folder.h"
#include "fovea/train/options.h"
#include "fovea/train/run_summary.h"

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

// A model folder, without the values of the weights.
struct Model {
  Safetensors weights;  // read first: it fails clearly if the folder is no model
  const TaskCommands& task;
  ConfigFiles configs;
  RunSummary training;

  explicit Model(const fs::path& where)
      : weights(read_model_weights(where)),
        task(commands_of_model(where)),
        configs{where, checkpoints_in(where)},
        training(run_summary(where)) {}

  // Those of the tensors of these names; without names of all.
  index parameters(const std::vector<std::string_view>& learned) const {
    index all = 0;
    for (const NamedTensor& named : weights.tensors) {
      const bool counts =
          learned.empty() || std::find(learned.begin(), learned.end(), named.name) != learned.end();
      if (counts) all += named.tensor.size();
    }
    return all;
  }
  // The update of the weights; -1 if it is not recorded.
  index step() const {
    if (const auto update = update_of(weights, configs.folder)) return *update;
    const Manifest manifest = read_manifest(configs.folder);
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

// A problem that was solved: its steps are the settings that cross-validation tried.
void describe_solved(const RunSummary& run) {
  if (run.best_step < 0) return;
  print(fmt::format("training: solved; {}, of setting {} that was tried\n",
                    validation_text("chosen", run.best_valid_loss, run.best_valid_metrics),
                    run.best_step));
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

void describe(const Model& model, const ModelDescription& description) {
  print(fmt::format("{}, {} parameters in {} tensors", task_row(model.task.kind).name.english,
                    model.parameters(description.solved), model.weights.tensors.size()));
  const bool is_solved = !description.solved.empty();
  print(model.step() < 0 || is_solved ? "\n" : fmt::format(", of update {}\n", model.step()));
  print(description.outputs);
  is_solved ? describe_solved(model.training)
            : describe_training(model, description.stop_after, description.targets);
  for (const SettingLine& line : description.settings) {
    print(fmt::format(
        "  {:<24} {}{}\n", line.name, line.began,
        line.began == line.now ? "" : fmt::format(", since it was resumed {}", line.now)));
  }
  for (const NamedTensor& named : model.weights.tensors) {
    print(fmt::format("  {:<48} {}\n", named.name, named.tensor.describe()));
  }
  for (const fs::path& checkpoint : model.configs.checkpoints) {
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

void describe_as_json(const Model& model, ModelDescription description) {
  Json::Array tensors, checkpoints;
  for (const NamedTensor& named : model.weights.tensors) tensors.push_back(json_of_tensor(named));
  for (const fs::path& checkpoint : model.configs.checkpoints) {
    checkpoints.push_back(checkpoint.string());
  }
  Json::Object object;
  object.emplace_back("kind", task_row(model.task.kind).key);
  object.emplace_back("parameters", model.parameters(description.solved));
  object.emplace_back("step", model.step());
  Json::Object training = json_of(model.training).object();
  add_metrics(training, model.training);
  object.emplace_back("training", std::move(training));
  object.emplace_back("settings", std::move(description.settings_now));
  for (auto& member : description.output_members) object.push_back(std::move(member));
  object.emplace_back("tensors", std::move(tensors));
  object.emplace_back("checkpoints", std::move(checkpoints));
  print(Json(std::move(object)).line() + "\n");
}

}  // namespace

CommandSpec inspect_spec() {
  return {
      .name = "inspect",
      .summary = "Shows what a model holds, and checks it for damage.",
      .positionals =
          {{"DIR", "folder of the model, a checkpoint, a folder of Hugging Face, or a GGUF file"}},
      .options = {{"verify", OptionKind::kFlag, "", "check every byte, checkpoints included",
                   "Options", ""},
                  {"json", OptionKind::kFlag, "", "print the result as one JSON object", "Options",
                   ""}},
      .epilog = R"(Examples:
  fovea inspect model --verify
  fovea inspect model.gguf)"};
}

int inspect(const Arguments& arguments) {
  const fs::path folder = arguments.text("DIR");
  const bool json = arguments.on("json");
  if (is_pretrained(folder)) return inspect_pretrained(folder, arguments);
  if (!arguments.on("verify")) {
    const Model model(folder);
    ModelDescription description = model.task.describe(model.configs);
    json ? describe_as_json(model, std::move(description)) : describe(model, description);
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
