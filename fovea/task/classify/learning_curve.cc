// SPDX-License-Identifier: Apache-2.0
#include "fovea/task/classify/learning_curve.h"

#include <fmt/core.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "fovea/task/classify/classifier.h"
#include "fovea/task/classify/linear.h"
#include "fovea/task/classify/read_texts.h"
#include "fovea/task/classify/run.h"
#include "fovea/train/model_folder.h"

namespace fovea {

namespace {

constexpr index kUsualFolds = 5;
constexpr index kFewestTexts = 50;  // of a part

ClassifierSettings settings_of(const std::filesystem::path& folder) {
  const std::string file = (folder / "config.json").string();
  ClassifierSettings settings =
      classifier_config_from_text(read_model_file(folder, "config.json"), file).settings;
  if (settings.model.kind != ClassifierModel::kLinear) {
    throw Error(ErrorCode::kModelWrongKind,
                fmt::format("{}: a learning curve is of a linear classifier of texts", file),
                "train one: fovea train classify --model linear");
  }
  return settings;
}

// Whether the files of a model hold what it was trained on. Folders of before have no fingerprint.
bool has_same_texts(const std::filesystem::path& folder, const ClassifierSettings& settings) {
  const std::vector<ProcessStart> starts = read_starts(folder);
  if (starts.empty() || starts.front().data.empty()) return true;
  const std::string file = (folder / "config.json").string();
  const ClassifierRun run = prepare_run(settings);
  return run.identity.data == starts.front().data &&
         run.outputs.labels ==
             classifier_config_from_text(read_model_file(folder, "config.json"), file)
                 .outputs.labels;
}

// All texts take part in cross-validation; the model's own validation texts are left alone.
ClassifierSettings for_curve(ClassifierSettings settings) {
  if (settings.linear.folds == 0) settings.linear.folds = kUsualFolds;
  settings.linear.threshold = "f1";  // curves are of what the texts tell, not of where it is cut
  settings.text.valid.clear();
  return settings;
}

}  // namespace

std::vector<ReportLearning> learning_curve(const Context& context,
                                           const std::filesystem::path& folder,
                                           TrainingObserver& observer,
                                           std::vector<std::string>& notes) {
  const ClassifierSettings stored = settings_of(folder);
  if (!has_same_texts(folder, stored)) {
    notes.push_back(fmt::format(
        "{}: the texts have changed since the model was trained: the curve is of those of today",
        folder.string()));
  }
  const ClassifierSettings settings = for_curve(stored);
  const LabelledSet set = read_labelled_set(settings.text, settings.recipe.seed);
  const index all = std::count(set.validates.begin(), set.validates.end(), false);
  std::vector<ReportLearning> points;
  for (const index part : {16, 8, 4, 2, 1}) {
    if (all / part < kFewestTexts && part > 1) continue;
    observer.told(fmt::format("{} of {} texts", all / part, all));
    ClassifierRun run =
        prepare_run(settings, part_of(set, 1.0 / static_cast<double>(part),
                                      settings.text.regression, settings.recipe.seed));
    run.linear->validation = {};
    const index rows = run.texts_to_train();
    const std::optional<MeasuredFit> done = fit_measured(context, run, observer);
    if (!done) return {};
    ReportLearning point{.rows = rows};
    for (const FoldedMetric& one : done->folds) {
      point.numbers.push_back({one.name, one.mean, one.low, one.high});
    }
    if (!point.numbers.empty()) points.push_back(std::move(point));
  }
  return points;
}

}  // namespace fovea
