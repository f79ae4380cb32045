// SPDX-License-Identifier: Apache-2.0
// What eval, explain and inspect do with a classifier.
#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <string>
#include <utility>

#include "cli/options.h"
#include "cli/output.h"
#include "cli/score_text.h"
#include "cli/task_commands.h"
#include "fovea/base/error.h"
#include "fovea/base/file.h"
#include "fovea/base/machine.h"
#include "fovea/base/option.h"
#include "fovea/data/frames.h"
#include "fovea/report/terminal.h"
#include "fovea/task/classify/classifier.h"
#include "fovea/task/classify/evaluate.h"
#include "fovea/task/embeddings.h"
#include "fovea/task/encoder_peft.h"
#include "fovea/task/explain.h"
#include "fovea/task/report/evaluation.h"
#include "fovea/text/utf8.h"

namespace fovea::cli {

namespace {

namespace fs = std::filesystem;

constexpr index kMistakeColumns = 400;  // of a mistake

// Precision and recall of averages are left to --json.
bool is_shown(std::string_view name) {
  const bool is_average = name.starts_with("macro_") || name.starts_with("micro_") ||
                          name.starts_with("weighted_") || name.starts_with("samples_");
  return !is_average || name.ends_with("_f1");
}

void add_numbers(std::string& report, const ClassifierScore& score) {
  report += numbers_head(score.confidence);
  score.visit_numbers([&](std::string_view name, const Interval& interval) {
    if (is_shown(name)) report += number_line(name, interval);
  });
}

// The thresholds of a linear model; of two classes the second has one.
void add_thresholds(std::string& report, const ClassifierScore& score) {
  constexpr std::size_t kMost = 12;
  if (score.thresholds.empty()) return;
  report += fmt::format("\nthresholds of the model ({}): ", score.threshold_rule);
  const std::size_t first = score.classes ? 1 : 0;
  for (std::size_t k = first; k < std::min(first + kMost, score.labels.size()); ++k) {
    report += fmt::format("{}{} {:.4f}", k == first ? "" : ", ", shown_name(score.labels[k]),
                          score.thresholds[k]);
  }
  report += score.labels.size() > first + kMost ? ", ... (all: --json)\n" : "\n";
}

void add_labels(std::string& report, const ClassifierScore& score) {
  const std::string_view name = score.classes ? "class" : "label";
  const index widest = std::max(widest_of(shown_names(score.labels)), display_width(name));
  report += fmt::format("\n{}  {:>8}  {:>9}  {:>9}  {:>6}  {:>6}   {:.0f} % of F1\n",
                        left(name, widest), std::string(words_of(score.input).entry) + "s",
                        "predicted", "precision", "recall", "F1", 100 * score.confidence);
  for (std::size_t k = 0; k < score.labels.size(); ++k) {
    const ScoresOf<Interval>& scores = score.by_label()[k];
    report += fmt::format("{}  {:>8}  {:>9}  {:>9.4f}  {:>6.4f}  {:>6.4f}   {} to {}\n",
                          left(shown_name(score.labels[k]), widest), score.support()[k],
                          score.predicted()[k], scores.precision.value, scores.recall.value,
                          scores.f1.value, four_digits(scores.f1.low), four_digits(scores.f1.high));
  }
}

void add_reliability(std::string& report, const ClassifierScore& score) {
  const bool classes = score.classes.has_value();
  report += fmt::format("\n{:<16} {:>8}  {:>8}  {:>8}\n", classes ? "confidence" : "probability",
                        "count", "mean", classes ? "right" : "have it");
  for (const ReliabilityBin& bin : score.reliability->bins) {
    if (bin.count == 0) continue;
    report += fmt::format("{:.4f} to {:.4f} {:>8}  {:>8.4f}  {:>8.4f}\n", bin.low, bin.high,
                          bin.count, bin.confidence, bin.accuracy);
  }
}

std::string label_list(const std::vector<std::string>& labels) {
  std::string text;
  for (const std::string& label : labels) text += (text.empty() ? "" : ", ") + escape_text(label);
  return text.empty() ? "none" : text;
}

std::string place_of(const ClassifierScore& score, const Mistake& m) {
  const std::string file = escape_text(m.file);
  return score.input == InputKind::kNpz ? place_of_sample(file, m.line)
                                        : fmt::format("{}:{}", file, m.line);
}

void add_mistakes(std::string& report, const ClassifierScore& score) {
  if (score.mistakes.empty()) return;
  report += "\nworst mistakes\n";
  const auto probability = [](double p) {
    return std::isnan(p) ? std::string() : fmt::format(" ({:.4f})", p);
  };
  for (const Mistake& m : score.mistakes) {
    report += fmt::format("{}  true {}{}, predicted {}{}, loss {:.4f}\n    {}\n",
                          place_of(score, m), label_list(m.truth), probability(m.truth_probability),
                          label_list(m.predicted), probability(m.probability), m.loss,
                          fit_columns(escape_text(m.text), kMistakeColumns));
  }
}

// The score as text for people: numbers with their intervals, a table of the classes, who was taken
// for whom, and the worst mistakes. Columns stand below each other whatever the script of the
// labels.
std::string report_of(const ClassifierScore& score) {
  std::string report = fmt::format("{} {}s", score.examples, words_of(score.input).entry);
  if (!score.labels.empty()) {
    report += fmt::format(", {} {}", score.labels.size(), score.classes ? "classes" : "labels");
  }
  report += '\n';
  add_numbers(report, score);
  if (!score.numbers) add_labels(report, score);
  add_thresholds(report, score);
  if (score.confusion) {
    report +=
        confusion_text(*score.confusion, shown_names(score.labels),
                       {"confusion (a row for each true class, a column for each predicted one)",
                        "most often confused (the whole matrix: --json, --plots)"});
  }
  if (score.reliability) add_reliability(report, score);
  add_mistakes(report, score);
  return report;
}

struct ClassifierTestFiles {
  index errors = 0;
  double threshold = 0.5;
  std::string plots;
  bool overwrite = false;
  bool as_pairs = false;

  template <class Visitor>
  void visit_fields(Visitor&& visit) {
    visit("as_pairs", as_pairs,
          "of a model from elsewhere: its texts are pairs; --second-column names the second");
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

// Checks the folder before anything is computed.
void check_pictures(const fs::path& folder, bool overwrite) {
  std::error_code ignored;
  const fs::file_status status = fs::status(folder, ignored);
  if (folder.empty() || !fs::exists(status)) return;
  if (!fs::is_directory(status)) {
    throw Error(ErrorCode::kWrite, fmt::format("--plots: {} is not a folder", folder.string()),
                "choose another folder for the pictures");
  }
  for (const char* name : {"confusion.svg", "reliability.svg"}) {
    check_page_file({"--plots", (folder / name).string(), overwrite, "picture", ".svg", "<svg"});
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
  return joined({said_or_not(ClassifierTestFiles(), "Classifiers"),
                 options_of(TableOptions(), "Labelled texts, of classifiers"),
                 options_of(EncoderAdapterOptions(), kAdaptersHeading)});
}

// The object of the score with the warnings, if there are any, as a member.
Json with_warnings(const Json& score, const std::vector<std::string>& notes) {
  Json::Object object = score.object();
  if (!notes.empty()) object.emplace_back("warnings", Json::Array(notes.begin(), notes.end()));
  return object;
}

int eval_classifier(const Arguments& arguments) {
  const std::vector<std::string> files = arguments.list("test");
  ClassifierTestFiles options;
  EncoderAdapterOptions peft;
  read_options(arguments, peft);
  std::vector<std::string> said = read_options(arguments, options);
  check_pictures(options.plots, options.overwrite);
  const Context context = model_context_of(arguments);
  const LoadedClassifier model =
      load_classifier(arguments.text("MODEL"),
                      options.as_pairs ? InputKind::kPairs : InputKind::kText, peft.adapter);
  ClassifierTestOptions test{.table = model.settings.text.table,
                             .threshold = options.threshold,
                             .mistakes = options.errors};
  for (std::string& name : read_options(arguments, test.table)) said.push_back(std::move(name));
  require_effect("eval", said, model);
  tell_threads(context);
  detail(fmt::format("model: {} parameters, {}, {}", model.parameters(),
                     model.reads_frames()
                         ? fmt::format("{} features", model.settings.model.features)
                         : fmt::format("vocabulary of {} tokens", model.settings.model.vocabulary),
                     arguments.text("MODEL")));
  std::vector<std::string> notes;
  const ClassifierScore score = evaluate_classifier(context, model, files, test, notes);
  for (const std::string& note : notes) warn(note);
  for (std::string& line : warn_of_trained_files(model.settings.text.train, files)) {
    notes.push_back(std::move(line));
  }
  warn_of_truncated(model, score.truncated, score.examples);
  write_pictures(options.plots, score);
  print(arguments.on("json") ? evaluation_line(with_warnings(json_of_score(score), notes),
                                               arguments.text("MODEL"), peft.adapter)
                             : report_of(score));
  return 0;
}

void refuse_other_input(const Arguments& arguments, bool reads_numbers) {
  if (reads_numbers) {
    return refuse_options(arguments, {"tokens", "truncate"},
                          ": the model reads numbers; --steps A-B shows a part");
  }
  refuse_options(arguments, kOfNumbers, ": the model reads texts, not numbers");
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
  refuse_options(arguments, {"token", "column"},
                 ": only taggers have tags of each token, and translators a translation");
  const LoadedClassifier model = load_classifier(
      folder, arguments.has("SECOND") ? InputKind::kPairs : InputKind::kText, request.adapters);
  refuse_other_input(arguments, model.reads_frames());
  if (model.reads_frames()) {
    return explain_sample(context, model, frames_for(arguments), request.sample.sample,
                          request.options);
  }
  refuse_options(arguments, {"truncate"}, ": a classifier cuts texts as in training");
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
  if (file.settings.model.has_base()) {
    std::erase_if(description.settings,
                  [](const SettingLine& line) { return is_idle_with_encoder(line.name); });
  }
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

// The reason why an option has no effect on this model; "" if it has one. Each has one on some.
std::string_view why_without_effect(std::string_view option, const LoadedClassifier& model) {
  const ClassifierTask task = model.config().task;
  if (option == "errors" || option == "overwrite") return {};
  if (option == "threshold") {
    return task == ClassifierTask::kMultiLabel ? "" : "the model does not have several labels";
  }
  if (option == "top" || option == "plots") {
    return task == ClassifierTask::kRegression ? "the model tells a number, and has no labels" : "";
  }
  if (option == "min_probability") {
    return task == ClassifierTask::kRegression   ? "the model tells a number, and has no labels"
           : task == ClassifierTask::kMultiLabel ? "a text has any number of labels; --threshold "
                                                   "says from which probability on"
                                                 : "";
  }
  if (option == "sort" && task == ClassifierTask::kRegression) {
    return "the model tells a number, and no probability";
  }
  if (option == "as_pairs") return model.is_foreign ? "" : "the model says itself what it reads";
  if (option == "second_column") {
    return model.reads_pairs() ? ""
           : model.is_foreign  ? "without --as-pairs the model reads single texts"
                               : "the model does not read pairs of texts";
  }
  if (option == "weights") return model.reads_frames() ? "" : "the model reads texts, not numbers";
  return model.reads_frames() ? "the model reads numbers, not texts" : "";
}

}  // namespace

void require_effect(std::string_view command, const std::vector<std::string>& said,
                    const LoadedClassifier& model) {
  for (const std::string& option : said) {
    const std::string_view why = why_without_effect(option, model);
    if (why.empty()) continue;
    throw Error(ErrorCode::kUsage,
                fmt::format("{}: {} has no effect: {}", command, option_name(option), why),
                "leave it out");
  }
}

void warn_of_truncated(const LoadedClassifier& model, index truncated, index all) {
  if (truncated == 0) return;
  const InputWords words = words_of(model.settings.text.input);
  const index most = model.settings.text.max_length;
  const std::string longest = model.is_foreign
                                  ? fmt::format("{} tokens", most)
                                  : fmt::format("--max-length ({} {}s)", most, words.row);
  warn(fmt::format("{}s longer than the model's {}: {} of {}; they are truncated{}", words.entry,
                   longest, truncated, all, model.is_foreign ? "" : ", as in training"));
}

const TaskCommands kClassifierCommands = {.kind = ModelKind::kClassifier,
                                          .called = "a classifier",
                                          .eval_options = classifier_eval_options,
                                          .eval = eval_classifier,
                                          .explain = explain_classifier,
                                          .describe = describe_classifier};

}  // namespace fovea::cli
