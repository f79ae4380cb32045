// SPDX-License-Identifier: Apache-2.0
#include "cli/classifier_use.h"

#include <fmt/core.h>

#include <algorithm>

#include "cli/output.h"
#include "fovea/base/check.h"
#include "fovea/base/option.h"

namespace fovea::cli {

namespace {

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
  if (option == "second_column") {
    return model.reads_pairs() ? "" : "the model does not read pairs of texts";
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
  warn(
      fmt::format("{}s longer than the model's --max-length ({} {}s): {} of {}; they are "
                  "truncated, as in training",
                  words.entry, model.settings.text.max_length, words.row, truncated, all));
}

}  // namespace fovea::cli
