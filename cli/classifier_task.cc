// SPDX-License-Identifier: Apache-2.0
// What eval, explain and inspect do with a classifier.
#include <fmt/core.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <utility>

#include "cli/classifier_report.h"
#include "cli/classifier_use.h"
#include "cli/common_options.h"
#include "cli/field_options.h"
#include "cli/output.h"
#include "cli/run_options.h"
#include "cli/table_options.h"
#include "cli/task_commands.h"
#include "fovea/base/error.h"
#include "fovea/base/file.h"
#include "fovea/base/machine.h"
#include "fovea/base/option.h"
#include "fovea/task/classify/evaluate.h"
#include "fovea/task/classify/explain.h"
#include "fovea/task/classify/vectors.h"
#include "fovea/task/report/evaluation.h"
#include "fovea/text/utf8.h"

namespace fovea::cli {

namespace {

namespace fs = std::filesystem;

struct ClassifierTestFiles {
  index errors = 0;
  double threshold = 0.5;
  std::string plots;
  bool overwrite = false;

  template <class Visitor>
  void visit_fields(Visitor&& visit) {
    visit("errors", errors, "print this many of the worst mistakes, with their texts");
    visit(
        "threshold", threshold,
        "models of --multi-label: the probability from which on a text has a label; a linear model "
        "has one of its own for each label, which 0.5 stands for");
    visit("plots", plots, "write confusion.svg and reliability.svg into this folder",
          {.shown = "DIR"});
    visit("overwrite", overwrite, "replace pictures that are there already");
  }
};

bool is_svg(const fs::path& path) {
  constexpr std::string_view kBegin = "<svg";
  std::string begin(kBegin.size(), '\0');
  std::ifstream file(path, std::ios::binary);
  file.read(begin.data(), static_cast<std::streamsize>(begin.size()));
  return begin == kBegin;
}

// Checks the folder before anything is computed.
void check_pictures(const fs::path& folder, bool overwrite) {
  if (folder.empty()) return;
  std::error_code ignored;
  const fs::file_status status = fs::status(folder, ignored);
  if (fs::exists(status) && !fs::is_directory(status)) {
    throw Error(ErrorCode::kWrite, fmt::format("--plots: {} is not a folder", folder.string()),
                "choose another folder for the pictures");
  }
  for (const char* name : {"confusion.svg", "reliability.svg"}) {
    const fs::path path = folder / name;
    const fs::file_status found = fs::symlink_status(path, ignored);
    if (!fs::exists(found)) continue;
    if (!overwrite) {
      throw Error(ErrorCode::kOutputExists, fmt::format("{}: exists already", path.string()),
                  "choose another folder, or say --overwrite");
    }
    if (!fs::is_regular_file(found) || !is_svg(path)) {
      throw Error(ErrorCode::kOutputExists,
                  fmt::format("{}: is no picture that fovea has written", path.string()),
                  "choose another folder");
    }
  }
}

void write_pictures(const fs::path& folder, const ClassifierScore& score) {
  if (folder.empty()) return;
  const std::vector<ScorePicture> pictures = pictures_of(score);
  if (score.confusion && pictures.size() < 2) {
    note(fmt::format("confusion.svg: not drawn for more than {} classes", kMostClassesOfMatrix));
  }
  const std::vector<fs::path> made = create_folders(folder);
  try {
    for (const ScorePicture& picture : pictures) {
      write_file_atomically(folder / picture.name, picture.svg);
    }
  } catch (...) {
    remove_empty_folders(made);
    throw;
  }
}

std::vector<OptionSpec> classifier_eval_options() {
  ClassifierTestFiles test;
  TableOptions table;
  std::vector<OptionSpec> options =
      said_or_not(options_of(flags_of(fields_of(test)), "Classifiers"));
  for (OptionSpec& option : options_of(table_flags(table), "Labelled texts, of classifiers")) {
    options.push_back(std::move(option));
  }
  return options;
}

// What was warned of is a member of the object, too, where there is any.
Json with_warnings(const Json& score, const std::vector<std::string>& notes) {
  Json::Object object = score.object();
  if (!notes.empty()) object.emplace_back("warnings", Json::Array(notes.begin(), notes.end()));
  return object;
}

int eval_classifier(const Arguments& arguments) {
  const std::vector<std::string> files = arguments.list("test");
  ClassifierTestFiles options;
  std::vector<std::string> said = set_from_outside(flags_of(fields_of(options)), arguments);
  check_pictures(options.plots, options.overwrite);
  const Context context = model_context_of(arguments);
  const LoadedClassifier model = load_classifier(arguments.text("DIR"));
  ClassifierTestOptions test{.table = model.settings.text.table,
                             .threshold = options.threshold,
                             .mistakes = options.errors};
  for (std::string& name : set_from_outside(table_flags(test.table), arguments)) {
    said.push_back(std::move(name));
  }
  require_effect("eval", said, model);
  tell_threads(context);
  detail(fmt::format("model: {} parameters, {}, {}", parameter_count(model.settings.model),
                     model.reads_frames()
                         ? fmt::format("{} features", model.settings.model.features)
                         : fmt::format("vocabulary of {} tokens", model.settings.model.vocabulary),
                     arguments.text("DIR")));
  std::vector<std::string> notes;
  const ClassifierScore score = evaluate_classifier(context, model, files, test, notes);
  for (const std::string& note : notes) warn(note);
  for (std::string& line : warn_of_trained_files(model.settings.text.train, files)) {
    notes.push_back(std::move(line));
  }
  warn_of_truncated(model, score.truncated, score.examples);
  write_pictures(options.plots, score);
  print(arguments.on("json")
            ? evaluation_line(with_warnings(json_of_score(score), notes), arguments.text("DIR"))
            : report_of(score));
  return 0;
}

void refuse_other_input(const Arguments& arguments, bool reads_numbers) {
  if (reads_numbers) {
    return refuse(arguments, {"tokens", "truncate"},
                  "the model reads numbers; --steps A-B shows a part");
  }
  refuse(arguments, {"sample", "joint", "time", "steps"}, "the model reads texts, not numbers");
}

// The file of numbers. Whoever gives a text instead is told what is expected.
FrameFile frames_for(const Arguments& arguments) {
  const std::string file = arguments.text("TEXT", "");
  std::error_code ignored;
  if (file.empty() || (file != "-" && !file.ends_with(".npz") && !fs::exists(file, ignored))) {
    throw Error(ErrorCode::kUsage,
                fmt::format("explain: the model reads numbers: expected an .npz file, got {}",
                            file.empty() ? "none" : excerpt(file)),
                "fovea explain DIR FILE.npz --sample N");
  }
  return read_frame_file(file, FrameLabels::kNone);
}

Explanation explain_classifier(const Context& context, const fs::path& folder,
                               const Arguments& arguments, const ExplainRequest& request) {
  refuse(arguments, {"token", "column"},
         "only taggers have tags of each token, and translators a translation");
  const LoadedClassifier model = load_classifier(folder);
  refuse_other_input(arguments, model.reads_frames());
  if (model.reads_frames()) {
    return explain_sample(context, model, frames_for(arguments), request.sample.sample,
                          request.options);
  }
  refuse(arguments, {"truncate"}, "a classifier cuts texts as in training");
  return explain_text(context, model,
                      model.reads_pairs() ? explained_pair(arguments) : explained_text(arguments),
                      request.options);
}

// Its task and its labels.
std::string classifier_outputs(const ClassifierConfigFile& file) {
  const ClassifierConfig& model = file.settings.model;
  const InputWords words = words_of(file.settings.text.input);
  const index most = file.settings.text.max_length;
  const std::string length =
      most > 0 ? fmt::format("at most {} {}s", most, words.row) : "any length";
  std::string lines =
      fmt::format("task: {}, {} {}, {}s of {}\n", to_string(model.task), model.classes,
                  model.task == ClassifierTask::kMultiLabel   ? "labels"
                  : model.task == ClassifierTask::kRegression ? "number"
                                                              : "classes",
                  words.entry, length);
  if (const VectorCounts& vectors = file.outputs.vectors; vectors.words > 0) {
    lines += vectors_line(vectors, file.settings.text.embeddings) +
             (model.freeze_embeddings ? "; the table is frozen\n" : "\n");
  }
  for (const std::string& label : file.outputs.labels) {
    lines += fmt::format("  label {}\n", escape_text(label));
  }
  return lines;
}

ModelDescription describe_classifier(const ConfigFiles& configs) {
  ClassifierConfigFile file = configs.began(classifier_config_from_text);
  ModelDescription description =
      described(file.settings, configs.now(classifier_config_from_text).settings);
  description.targets = fmt::format("{}s", words_of(file.settings.text.input).entry);
  description.outputs = classifier_outputs(file);
  if (file.settings.model.kind == ClassifierModel::kLinear) {
    description.solved = {"weight", "weight.levels", "weight.bias", "prior"};
  }
  const std::vector<std::string>& labels = file.outputs.labels;
  description.output_members = {{"labels", Json::Array(labels.begin(), labels.end())},
                                {"embeddings", json_of(file.outputs.vectors)}};
  return description;
}

}  // namespace

const TaskCommands kClassifierCommands = {.kind = ModelKind::kClassifier,
                                          .called = "a classifier",
                                          .eval_options = classifier_eval_options,
                                          .eval = eval_classifier,
                                          .explain = explain_classifier,
                                          .describe = describe_classifier};

}  // namespace fovea::cli
