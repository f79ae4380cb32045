// SPDX-License-Identifier: Apache-2.0
#include "fovea/linear/fit_plan.h"

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <string_view>

#include "fovea/base/random.h"
#include "fovea/data/epoch_order.h"
#include "fovea/linear/scaled_solver.h"
#include "fovea/linear/solver.h"
#include "fovea/linear/wide_solver.h"
#include "fovea/text/keyed_hash.h"

namespace fovea {

bool is_sampled(ClassifierTask task, index outputs) {
  return task != ClassifierTask::kRegression && outputs > kMostMeasured;
}

index fold_count(index texts, ClassifierTask task, index outputs, const LinearFitOptions& options) {
  constexpr index kMany = 5000, kFewest = 10;
  if (texts < kFewest) return 0;
  if (options.folds > 0) return std::min(options.folds, texts);
  return texts > kMany || is_sampled(task, outputs) ? 3 : 5;
}

index calibration_folds(index texts, ClassifierTask task, index outputs,
                        const LinearFitOptions& options) {
  constexpr index kFew = 1000, kSome = 20'000;
  const index folds = fold_count(texts, task, outputs, options);
  const bool keeps = folds == 0 || options.folds > 0 || texts > kSome ||
                     task == ClassifierTask::kRegression || is_sampled(task, outputs);
  return keeps ? folds : std::clamp<index>(texts / 10, folds, texts > kFew ? 10 : 20);
}

namespace {

std::vector<NgramWeighting> weightings_of(ClassifierTask task, bool is_much,
                                          const LinearFitOptions& options) {
  using enum NgramWeighting;
  if (task == ClassifierTask::kRegression) return {is_binary(options.weighting) ? kBinary : kTfidf};
  if (options.weighting != kAuto) return {options.weighting};
  if (is_much) return {kRatio};
  return {kTfidf, kRatio};
}

}  // namespace

std::vector<LinearTrial> paths_of(const NgramFeatures& features, index texts, ClassifierTask task,
                                  const LinearFitOptions& options) {
  constexpr index kMuch = 3'000'000, kFew = 1000;
  const bool is_much = features.values() > kMuch;
  // Few texts hardly tell what is better without words, and people understand a model by words.
  const bool may_leave_out = options.leave_out == NgramsLeftOut::kWords && !is_much &&
                             texts >= kFew && features.rules.words.any() &&
                             features.rules.characters.any();
  std::vector<LinearTrial> paths;
  for (const NgramWeighting weighting : weightings_of(task, is_much, options)) {
    paths.push_back({.weighting = weighting});
  }
  // Without words the last weighting alone: of two it is ratios, which are better almost always.
  if (may_leave_out) {
    paths.push_back({.weighting = paths.back().weighting, .without_words = true});
  }
  return paths;
}

std::vector<double> path_of(NgramWeighting weighting, ClassifierTask task, index folds,
                            const LinearFitOptions& options) {
  constexpr double kUsual = 16;
  constexpr int kValues = 6;
  if (options.c > 0) return {options.c};
  if (folds == 0) return {kUsual};
  const bool is_number = task == ClassifierTask::kRegression;
  double c = is_number ? 1.0 / 16 : has_ratios(weighting) ? 0.25 : 1;
  std::vector<double> path;
  for (int n = 0; n < kValues; ++n, c *= 4) path.push_back(c);
  return path;
}

std::vector<std::int32_t> draw_folds(const LinearData& data, index folds, std::uint64_t seed) {
  const index texts = data.truth.size();
  std::vector<std::vector<index>> groups(1);
  const bool has_classes =
      data.task == ClassifierTask::kBinary || data.task == ClassifierTask::kSingleLabel;
  if (has_classes) groups.resize(static_cast<std::size_t>(data.classes));
  for (index i = 0; i < texts; ++i) {
    const auto group = has_classes ? static_cast<std::size_t>(data.truth.labels_of(i)[0]) : 0;
    groups[group].push_back(i);
  }
  std::vector<std::int32_t> fold(static_cast<std::size_t>(texts));
  KeyedMap<std::string_view, std::int32_t> seen;
  index next = 0;
  for (std::size_t g = 0; g < groups.size(); ++g) {
    Random random(seed, RandomUse::kBatches, g);
    shuffle(groups[g], random);
    for (const index i : groups[g]) {
      const auto at = static_cast<std::size_t>(i);
      const auto own = static_cast<std::int32_t>(next % folds);
      const auto [known, is_new] = seen.emplace(data.texts[at], own);
      fold[at] = known->second;
      if (is_new) ++next;
    }
  }
  return fold;
}

double kept_bytes(index texts, index columns, index states) {
  constexpr double kOfText = 2 * sizeof(double) + sizeof(std::int32_t) + sizeof(float) +
                             sizeof(double);  // duals, used, y, costs
  return static_cast<double>(states) *
         (kOfText * static_cast<double>(texts) + sizeof(float) * static_cast<double>(columns));
}

LinearSize linear_size(const NgramFeatures& features, index texts, ClassifierTask task,
                       index classes, const LinearFitOptions& options) {
  const index outputs = logit_count(task, classes);
  const index folds = fold_count(texts, task, outputs, options);
  const index again = calibration_folds(texts, task, outputs, options);
  index trials = 0;
  const std::vector<LinearTrial> paths = paths_of(features, texts, task, options);
  for (const LinearTrial& path : paths) {
    trials += static_cast<index>(path_of(path.weighting, task, folds, options).size());
  }
  double ngram_bytes = 0;
  for (const NgramBlock& block : features.blocks) {
    const auto names = static_cast<double>(block.names.size());
    ngram_bytes += names * sizeof(float) +
                   NgramNames::bytes_of(names, static_cast<double>(block.names.text().size()));
  }
  return {.texts = texts,
          .columns = features.columns(),
          .values = features.values() + texts,
          .outputs = outputs,
          .folds = folds,
          .paths = static_cast<index>(paths.size()),
          .trials = trials,
          .measured = is_sampled(task, outputs) ? kMostMeasured : outputs,
          .folds_again = is_sampled(task, outputs) || again > folds ? again : 0,
          .ngram_bytes = ngram_bytes,
          .is_scaled = task != ClassifierTask::kRegression && !is_sampled(task, outputs) &&
                       solves_alone(outputs, features.columns())};
}

index LinearSize::lanes() const {
  if (measured < outputs) return kWideLanes;
  return solves_alone(outputs, columns) ? 1 : std::min(outputs, kMostLanes);
}

double LinearSize::bytes(const Context& context) const {
  const auto n = static_cast<double>(texts), k = static_cast<double>(outputs);
  const auto width = static_cast<double>(columns);
  const double rows = SparseRows::bytes_of(static_cast<double>(values));
  const auto m = static_cast<double>(measured), side = static_cast<double>(lanes());
  // Each thread has the counts that ratios come from; each lane has weights, ratios and their
  // squares, and what a row has.
  constexpr double kOfText = 64;
  const bool is_wide = measured < outputs;
  const double of_column = (is_wide ? 4 : 2) * sizeof(double);
  const double of_lane = is_wide ? 3 * sizeof(float) : 2 * sizeof(double) + sizeof(float);
  const double copy =
      is_scaled ? scaled_bytes(static_cast<double>(values)) + width * sizeof(float) : 0;
  const double own = width * (of_column + side * of_lane) + n * side * kOfText + copy;
  const double fit = context.threads() * own + k * width * sizeof(float) +
                     n * m * sizeof(float) * static_cast<double>(trials) +
                     n * k * sizeof(float) * 2 +
                     std::min(kMostKept, kept_bytes(texts, columns, measured * folds * paths));
  return ngram_bytes + std::max(2 * rows, rows + fit);
}

double LinearSize::seconds(const Context& context) const {
  constexpr double kPasses = 15, kSecondsToRead = 4e-7;
  const double of_value = measured < outputs ? 5e-10 : is_scaled ? 1.2e-9 : 2e-9;
  const double of_problems =
      static_cast<double>(problems()) * kPasses * of_value / context.threads();
  return static_cast<double>(values) * (of_problems + kSecondsToRead);
}

}  // namespace fovea
