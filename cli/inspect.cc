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
#include "cli/output.h"
#include "cli/score_text.h"
#include "cli/task_commands.h"
#include "fovea/base/bytes.h"
#include "fovea/base/check.h"
#include "fovea/config/field.h"
#include "fovea/config/json.h"
#include "fovea/pretrained/folder_tensors.h"
#include "fovea/pretrained/foreign_json.h"
#include "fovea/pretrained/pretrained.h"
#include "fovea/report/progress.h"
#include "fovea/task/classify/linear.h"
#include "fovea/task/language_model/preference.h"
#include "fovea/tensor/gguf.h"
#include "fovea/text/utf8.h"
#include "fovea/train/average.h"
#include "fovea/train/checkpoint.h"
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
  std::string path, problem;  // no problem: ""
  bool to_come = false;       // weights that the training has not saved yet
};

Json json_of(const CheckedFile& file) {
  return Json::Object{{"path", file.path}, {"problem", file.problem}, {"to_come", file.to_come}};
}

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
    print_json({{"files", std::move(list)}});
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

  // How many parameters the tensors of these names have; without names, all tensors.
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
void describe_solved(const Model& model) {
  const std::string choice = choice_text(choice_in(model.weights.metadata));
  if (!choice.empty()) print(fmt::format("chosen: {}\n", choice));
  const RunSummary& run = model.training;
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
  is_solved ? describe_solved(model)
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
  return Json::Object{{"name", named.name},
                      {"type", to_string(named.tensor.dtype())},
                      {"shape", Json::Array(shape.begin(), shape.end())}};
}

void describe_as_json(const Model& model, ModelDescription description) {
  Json::Array tensors, checkpoints;
  for (const NamedTensor& named : model.weights.tensors) tensors.push_back(json_of_tensor(named));
  for (const fs::path& checkpoint : model.configs.checkpoints) {
    checkpoints.push_back(checkpoint.string());
  }
  Json::Object training = json_of(model.training).object();
  add_metrics(training, model.training);
  Json::Object object{{"kind", task_row(model.task.kind).key},
                      {"parameters", model.parameters(description.solved)},
                      {"step", model.step()},
                      {"training", std::move(training)}};
  Json::Object choice;
  for (auto& [name, value] : choice_in(model.weights.metadata)) choice.emplace_back(name, value);
  if (!choice.empty()) object.emplace_back("choice", std::move(choice));
  object.emplace_back("settings", std::move(description.settings_now));
  for (auto& member : description.output_members) object.push_back(std::move(member));
  object.emplace_back("tensors", std::move(tensors));
  object.emplace_back("checkpoints", std::move(checkpoints));
  print_json(std::move(object));
}

// A folder of Hugging Face, or a GGUF file.
constexpr std::size_t kShownElements = 4;    // of an array, for people
constexpr std::size_t kListedElements = 64;  // of an array that JSON lists

std::string shown(const GgufValue& value) {
  if (!value.is_array()) return excerpt(value.shown());
  std::string text = fmt::format("{} {}:", value.size(), to_string(value.element()));
  for (std::size_t n = 0; n < std::min(value.size(), kShownElements); ++n) {
    text += ' ' + excerpt(value.shown(n));
  }
  return value.size() > kShownElements ? text + " ..." : text;
}

Json json_of_element(const GgufValue& value, std::size_t n) {
  switch (value.element()) {
    case GgufValueType::kString:
      return valid_utf8(value.text(n));
    case GgufValueType::kBool:
      return value.flag(n);
    case GgufValueType::kFloat32:
    case GgufValueType::kFloat64:
      return value.number(n);
    case GgufValueType::kUInt64:
      return value.shown(n);  // may be beyond what JSON's readers count to
    default:
      return value.whole(n);
  }
}

Json json_of_value(const GgufValue& value) {
  if (!value.is_array()) return json_of_element(value, 0);
  if (value.size() > kListedElements) {
    return Json::Object{{"type", to_string(value.element())},
                        {"size", static_cast<index>(value.size())}};
  }
  Json::Array list;
  for (std::size_t n = 0; n < value.size(); ++n) list.push_back(json_of_element(value, n));
  return list;
}

std::string architecture_of(const GgufHeader& header) {
  const GgufValue* const value = header.find("general.architecture");
  return value == nullptr ? "" : value->shown();
}

void describe(const GgufHeader& header) {
  print(fmt::format("GGUF {} of architecture {}, {} parameters in {} tensors\n", header.version,
                    excerpt(architecture_of(header)), value_count(header), header.tensors.size()));
  for (const GgufPair& pair : header.metadata) {
    print(fmt::format("  {:<40} {}\n", escape_text(pair.key), shown(pair.value)));
  }
  for (const GgufTensor& tensor : header.tensors) {
    print(fmt::format("  {:<40} {} {}\n", escape_text(tensor.name), tensor.type->name,
                      to_string(tensor.shape)));
  }
}

void describe_as_json(const GgufHeader& header) {
  Json::Object metadata;
  for (const GgufPair& pair : header.metadata) {
    metadata.emplace_back(valid_utf8(pair.key), json_of_value(pair.value));
  }
  Json::Array tensors;
  for (const GgufTensor& tensor : header.tensors) {
    tensors.push_back(
        Json::Object{{"name", valid_utf8(tensor.name)},
                     {"type", tensor.type->name},
                     {"shape", Json::Array(tensor.shape.begin(), tensor.shape.end())}});
  }
  print_json({{"kind", "gguf"},
              {"version", header.version},
              {"architecture", valid_utf8(architecture_of(header))},
              {"parameters", value_count(header)},
              {"metadata", std::move(metadata)},
              {"tensors", std::move(tensors)}});
}

// The first problem of a tensor's values; "" if there is none. The formats have no checksum.
std::string problem_of(const std::string& name, Vec<const float> values) {
  const auto found =
      std::find_if(values.begin(), values.end(), [](float value) { return !std::isfinite(value); });
  if (found == values.end()) return "";
  return fmt::format("tensor {}: value {} is {}", escape_text(name), found - values.begin(),
                     std::isnan(*found) ? "NaN" : "infinite");
}

std::string problem_of(const GgufSource& tensors) {
  std::string problem;
  for (std::size_t n = 0; n < tensors.names().size() && problem.empty(); ++n) {
    const Tensor values = tensors.read(n);
    problem = problem_of(tensors.names()[n], values.vec<float>());
  }
  return problem;
}

std::string problem_of(const FolderTensors& tensors) {
  std::string problem;
  for (std::size_t n = 0; n < tensors.names().size() && problem.empty(); ++n) {
    const std::string& name = tensors.names()[n];
    Tensor values = Tensor::empty(tensors.shape(name));
    tensors.read(name, values.vec<float>());
    problem = problem_of(name, std::as_const(values).vec<float>());
  }
  return problem;
}

int verify(const fs::path& path, const std::string& problem, bool json) {
  const CheckedFile file{path.string(), problem};
  if (json) {
    print_json({{"files", Json::Array{json_of(file)}}});
  } else {
    print(fmt::format("{}  {}\n", state_of(file), file.path));
  }
  if (problem.empty()) return 0;
  throw Error(ErrorCode::kModelDamaged, fmt::format("{}: {}", path.string(), problem),
              "get the file again, or restore it from a copy");
}

int inspect_gguf(const fs::path& path, const Arguments& arguments) {
  const FileSource file(path);
  const GgufSource tensors(file, path.string());
  const bool json = arguments.on("json");
  if (arguments.on("verify")) return verify(path, problem_of(tensors), json);
  json ? describe_as_json(tensors.header()) : describe(tensors.header());
  return 0;
}

// "": it does not say.
std::string type_of(const Json& config) {
  return ForeignObject(config, "config.json").text("model_type", "");
}

index value_count(const FolderTensors& tensors) {
  index count = 0;
  for (const std::string& name : tensors.names()) count += tensors.shape(name).size();
  return count;
}

void describe(const Json& config, const FolderTensors& tensors) {
  print(fmt::format("a model of Hugging Face, model_type {}, {} parameters in {} tensors\n",
                    excerpt(type_of(config)), value_count(tensors), tensors.names().size()));
  for (const auto& [key, value] : config.object()) {
    print(fmt::format("  {:<40} {}\n", escape_text(key), excerpt(value.line())));
  }
  for (const std::string& name : tensors.names()) {
    print(fmt::format("  {:<40} {} {}\n", escape_text(name), tensors.type(name),
                      to_string(tensors.shape(name))));
  }
}

void describe_as_json(const Json& config, const FolderTensors& tensors) {
  Json::Array list;
  for (const std::string& name : tensors.names()) {
    const Shape& shape = tensors.shape(name);
    list.push_back(Json::Object{{"name", valid_utf8(name)},
                                {"type", tensors.type(name)},
                                {"shape", Json::Array(shape.begin(), shape.end())}});
  }
  print_json({{"kind", "hugging_face"},
              {"architecture", type_of(config)},
              {"parameters", value_count(tensors)},
              {"metadata", config},
              {"tensors", std::move(list)}});
}

int inspect_hugging_face(const fs::path& folder, const Arguments& arguments) {
  const FolderTensors tensors(folder);
  const bool json = arguments.on("json");
  if (arguments.on("verify")) return verify(folder, problem_of(tensors), json);
  const Json config = read_foreign_json(folder / "config.json");
  json ? describe_as_json(config, tensors) : describe(config, tensors);
  return 0;
}

int inspect_pretrained(const fs::path& path, const Arguments& arguments) {
  return is_gguf(path) ? inspect_gguf(path, arguments) : inspect_hugging_face(path, arguments);
}

int inspect(const Arguments& arguments) {
  const fs::path folder = arguments.text("MODEL");
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
  add(folder, verify_reference(folder), files);
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

}  // namespace

Command inspect_command() {
  return {.name = "inspect",
          .summary = "Shows what a model holds, and checks it for damage.",
          .positionals = {{"MODEL",
                           "folder of the model, a checkpoint, a folder of Hugging Face, or a "
                           "GGUF file"}},
          .options = {flag("verify", "check every byte, checkpoints included"), json_option()},
          .epilog = R"(Examples:
  fovea inspect model --verify
  fovea inspect model.gguf)",
          .run = inspect};
}

}  // namespace fovea::cli
