// SPDX-License-Identifier: Apache-2.0
// What the training of a classifier has of its own.
#include <fmt/core.h>

#include <algorithm>

#include "fovea/base/error.h"
#include "fovea/task/classify/linear.h"
#include "fovea/task/classify/objective.h"
#include "fovea/task/classify/run.h"
#include "fovea/task/classify/vectors.h"
#include "fovea/task/training_task.h"
#include "fovea/text/utf8.h"
#include "fovea/train/model_folder.h"

namespace fovea {

// A model of numbers has no tokenizer.
std::vector<NamedFile> model_files(const ClassifierRun& run) {
  const std::string config = config_text(run.settings, run.outputs);
  if (!run.tokenizer) return {{"config.json", config}};
  return first_files(config, run.tokenizer->data());
}

void keep_found(ClassifierTextOptions& given, const ClassifierTextOptions& began) {
  if (given.tokenizer == "auto") given.tokenizer = began.tokenizer;
  if (given.max_length == 0) given.max_length = began.max_length;
}

void keep_found(ClassifierSettings& given, const ClassifierSettings& began) {
  keep_found(given.text, began.text);
  ClassifierConfig& is = given.model;
  const ClassifierConfig& was = began.model;
  is.vocabulary = was.vocabulary;
  is.classes = was.classes;
  is.features = was.features;
  is.joints = was.joints;
  is.task = was.task;
  is.block = was.block;
  if (given.linear.word_ngrams == "auto") given.linear.word_ngrams = began.linear.word_ngrams;
  if (given.linear.char_ngrams == "auto") given.linear.char_ngrams = began.linear.char_ngrams;
  if (is.ngrams != 1 && is.buckets == 0) is.buckets = was.buckets;
}

Classifier make_model(const ClassifierRun& run) {
  return Classifier(run.settings.model, run.settings.recipe.seed);
}

ClassifierObjective make_objective(const Context& context, const Classifier& model,
                                   const ClassifierRun& run) {
  return {context,
          model,
          {.training = *run.training,
           .validation = run.validation ? &*run.validation : nullptr,
           .class_weights = run.class_weights,
           .numbers = run.outputs.numbers,
           .frames = run.frames.rows(),
           .metric = run.settings.text.metric,
           .accumulate = run.settings.recipe.accumulate,
           .seed = run.settings.recipe.seed,
           .uses = run.uses.get()}};
}

namespace {

// The fingerprint of the texts has the numbers of their labels, not the names.
void require_same_labels(const std::filesystem::path& folder, const ClassifierRun& run) {
  std::error_code ignored;
  if (!std::filesystem::exists(folder / "config.json", ignored)) return;
  const std::string name = (folder / "config.json").string();
  const std::vector<std::string> began =
      classifier_config_from_text(read_model_file(folder, "config.json"), name).outputs.labels;
  const std::vector<std::string>& now = run.outputs.labels;
  const auto [was, is] = std::mismatch(began.begin(), began.end(), now.begin(), now.end());
  if (was == began.end() && is == now.end()) return;
  throw Error(
      ErrorCode::kConfig,
      fmt::format("cannot resume: the labels are not those of the run: {}, it began with {}",
                  is == now.end() ? "fewer" : excerpt(*is),
                  was == began.end() ? "fewer" : excerpt(*was)),
      "give the labels that the run began with, or train into another folder");
}

}  // namespace

TrainResult train_classifier(const Context& context, const ClassifierRun& run,
                             const std::filesystem::path& folder, StartAt start,
                             TrainingObserver& observer) {
  if (start.resume || start.checkpoint) require_same_labels(folder, run);
  if (run.linear) return train_linear(context, run, folder, start, observer);
  return RunTraining(context, run, folder, std::move(start)).train(run.settings.recipe, observer);
}

}  // namespace fovea
