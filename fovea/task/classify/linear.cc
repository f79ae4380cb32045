// SPDX-License-Identifier: Apache-2.0
#include "fovea/task/classify/linear.h"

#include <fmt/core.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

#include "fovea/base/clock.h"
#include "fovea/base/machine.h"
#include "fovea/linear/compact.h"
#include "fovea/linear/decide.h"
#include "fovea/metrics/bootstrap.h"
#include "fovea/task/classify/classifier.h"
#include "fovea/task/classify/evaluate.h"
#include "fovea/task/classify/read_texts.h"
#include "fovea/task/classify/run.h"
#include "fovea/task/load_parts.h"
#include "fovea/task/run_flow.h"
#include "fovea/text/utf8.h"
#include "fovea/train/history.h"
#include "fovea/train/model_folder.h"

namespace fovea {

namespace {

NgramRules rules_of(const ClassifierSettings& settings) {
  NgramRules rules;
  rules.words = parse_lengths(settings.linear.word_ngrams, "word_ngrams");
  rules.characters = parse_lengths(settings.linear.char_ngrams, "char_ngrams");
  rules.split = settings.text.words;
  rules.lower = settings.text.lower;
  rules.binary = is_binary(settings.linear.weighting);
  return rules;
}

LinearSize size_of(const ClassifierRun& run) {
  const ClassifierConfig& model = run.settings.model;
  return linear_size(run.linear->features, run.texts_to_train(), model.task, model.classes,
                     run.settings.linear);
}

double loss_of(const float* values, const Examples& truth, index i, const ClassifierConfig& model) {
  if (model.task == ClassifierTask::kRegression) {
    const double error = double{values[0]} - double{truth.numbers[static_cast<std::size_t>(i)]};
    return error * error;
  }
  if (model.task != ClassifierTask::kMultiLabel) {
    return loss_of_probability(values[truth.labels_of(i)[0]]);
  }
  double loss = 0;
  for (index k = 0; k < model.classes; ++k) {
    loss += loss_of_probability(truth.has_label(i, k) ? values[k] : 1 - values[k]);
  }
  return loss / static_cast<double>(model.classes);
}

Validation measured(std::vector<float> values, const Examples& truth, const ClassifierRun& run,
                    const LinearModel& linear, BestUses* uses = nullptr,
                    std::vector<float>* decided = nullptr) {
  const ClassifierConfig& model = run.settings.model;
  SetPredictions found{.values = std::move(values)};
  for (index i = 0; i < truth.size(); ++i) {
    found.loss += loss_of(found.values.data() + i * model.classes, truth, i, model);
  }
  found.weight = static_cast<double>(truth.size());
  found.values = decisive_rows(model.task, found.values, linear.weights().thresholds);
  Validation validation =
      measure(found, truth, model, run.outputs.numbers, run.settings.text.metric);
  if (uses != nullptr) uses->take(found.values, truth, model, validation.goodness());
  if (decided != nullptr) *decided = std::move(found.values);
  return validation;
}

// The truth of some of the texts.
Examples truth_of(const Examples& all, const std::vector<index>& texts) {
  Examples part;
  for (const index i : texts) {
    if (!all.numbers.empty()) part.numbers.push_back(all.numbers[static_cast<std::size_t>(i)]);
    const auto labels = all.labels_of(i);
    part.labels.insert(part.labels.end(), labels.begin(), labels.end());
    part.label_starts.push_back(static_cast<index>(part.labels.size()));
    part.starts.push_back(0);
  }
  return part;
}

// The scores of each fold by itself.
std::vector<FoldedMetric> folded(const LinearFit& fit, const Examples& truth,
                                 const ClassifierRun& run) {
  const auto classes = static_cast<std::size_t>(run.settings.model.classes);
  std::vector<std::vector<index>> texts;
  for (std::size_t i = 0; i < fit.fold.size(); ++i) {
    const auto fold = static_cast<std::size_t>(fit.fold[i]);
    texts.resize(std::max(texts.size(), fold + 1));
    texts[fold].push_back(static_cast<index>(i));
  }
  std::vector<FoldedMetric> all;
  for (const std::vector<index>& own : texts) {
    if (own.empty()) continue;
    std::vector<float> values;
    for (const index i : own) {
      const auto begin = fit.unseen.begin() +
                         static_cast<std::ptrdiff_t>(i) * static_cast<std::ptrdiff_t>(classes);
      values.insert(values.end(), begin, begin + static_cast<std::ptrdiff_t>(classes));
    }
    const Validation found = measured(std::move(values), truth_of(truth, own), run, fit.model);
    std::vector<MetricValue> numbers = found.metrics;
    numbers.push_back({"loss", found.loss});
    for (const MetricValue& one : numbers) {
      auto at = std::find_if(all.begin(), all.end(),
                             [&](const FoldedMetric& metric) { return metric.name == one.name; });
      if (at == all.end()) at = all.insert(all.end(), {.name = one.name});
      at->folds.push_back(one.value);
    }
  }
  for (FoldedMetric& metric : all) {
    const Interval interval = mean_interval(metric.folds);
    metric.mean = interval.value;
    metric.low = interval.low;
    metric.high = interval.high;
  }
  return all;
}

std::vector<float> predictions(const Context& context, const LinearModel& model,
                               const std::vector<std::string>& texts) {
  const std::vector<std::string_view> read(texts.begin(), texts.end());
  std::vector<float> values(texts.size() * static_cast<std::size_t>(model.weights().classes));
  predict_texts(context, model, read, values.data());
  return values;
}

// The same from rows that are known.
std::vector<float> predictions(const Context& context, const LinearModel& model,
                               const SparseRows& rows) {
  const index classes = model.weights().classes;
  std::vector<float> values(static_cast<std::size_t>(rows.rows() * classes));
  const double of_row = 4.0 * static_cast<double>(rows.size() / std::max<index>(rows.rows(), 1)) *
                        static_cast<double>(model.weights().outputs());
  context.for_ranges(rows.rows(), of_row, [&](index begin, index end) {
    for (index i = begin; i < end; ++i) model.predict(rows.row(i), values.data() + i * classes);
  });
  return values;
}

// The labels for which no threshold reaches the precision that was asked for.
std::vector<std::string> missed_lines(const LinearFit& fit, const Examples& truth,
                                      const ClassifierRun& run) {
  constexpr std::size_t kMostListed = 5;
  const ThresholdRule rule = parse_threshold(run.settings.linear.threshold);
  const std::vector<MissedPrecision> missed = missed_precisions(
      run.settings.model.task, fit.unseen, truth, fit.model.weights().thresholds, rule);
  if (missed.empty()) return {};
  std::string list;
  for (std::size_t n = 0; n < std::min(missed.size(), kMostListed); ++n) {
    const std::string& label = run.outputs.labels[static_cast<std::size_t>(missed[n].label)];
    list += fmt::format("{}{} ({:.3f})", n > 0 ? ", " : "", excerpt(label), missed[n].precision);
  }
  if (missed.size() > kMostListed) list += fmt::format(" and {} more", missed.size() - kMostListed);
  return {
      fmt::format("validation: no threshold reaches a precision of {}: {}, at the highest; add "
                  "texts, or ask for less",
                  rule.value, list)};
}

// The line of the log about a choice.
std::string told_of(const std::string& choice, bool without_words) {
  return fmt::format("chosen: {}{}", choice,
                     without_words ? " (--leave-out none keeps these)" : "");
}

// The labels of a run that is resumed are those of its config.json, which stays.
void require_same_data(const std::filesystem::path& folder, const ClassifierRun& run) {
  const std::vector<ProcessStart> starts = read_starts(folder);
  if (starts.empty()) return;
  RunIdentity began = run.identity;
  began.model = starts.front().model;
  began.data = starts.front().data;
  began.tokenizer = starts.front().tokenizer;
  require_same_run(began, run.identity);
}

// Writes a record for each setting that was tried, and the metrics of the one that was chosen.
// `found` is measured on texts that the model had not seen; none: there were too few.
RunState write_records(const std::filesystem::path& folder, const Validation& training,
                       const MeasuredFit& done, double seconds) {
  const LinearFit& fit = done.fit;
  const std::optional<Validation>& found = done.found;
  History history(folder / "metrics.jsonl");
  const auto chosen = static_cast<index>(fit.chosen);
  RunState state{.step = chosen + 1, .seconds = seconds};
  state.train_loss = training.loss;
  double best = std::numeric_limits<double>::infinity();
  for (index t = 0; found && t < static_cast<index>(fit.trials.size()); ++t) {
    const double loss = t == chosen ? found->loss : fit.trials[static_cast<std::size_t>(t)].loss;
    best = t >= chosen ? found->loss : std::min(best, loss);
    history.add(EvaluationRecord{.step = t + 1,
                                 .valid_loss = loss,
                                 .best_valid_loss = best,
                                 .is_best = t == chosen,
                                 .seconds = seconds});
    if (t != chosen) continue;
    history.add(MetricsRecord{.step = t + 1, .is_best = true, .values = found->metrics});
    state.evaluated_step = state.best_step = state.step;
    state.valid_loss = state.best_valid_loss = loss;
  }
  if (!done.folds.empty()) history.add(FoldsRecord{.step = state.step, .values = done.folds});
  history.add(
      TrainingRecord{.step = state.step, .loss = training.loss, .values = training.metrics});
  state.metrics_bytes = history.flush();
  return state;
}

}  // namespace

void learn_ngrams(ClassifierRun& run) {
  ClassifierSettings& settings = run.settings;
  const std::vector<std::string>& texts = run.linear->training.texts;
  ChosenNgrams chosen =
      choose_ngrams(texts, settings.linear, settings.text.words, settings.text.lower);
  settings.linear.word_ngrams = to_string(chosen.rules.words);
  settings.linear.char_ngrams = to_string(chosen.rules.characters);
  settings.linear.leave_out = chosen.leave_out;
  run.linear->features = learn_features(texts, chosen.rules, logit_count(settings.model));
  run.overview.push_back(fmt::format("model: linear, of {} n-grams; {}",
                                     run.linear->features.bias_column(), chosen.note));
}

RunCost linear_cost(const ClassifierRun& run) {
  return {.parameters = (run.linear->features.columns() + 1) * logit_count(run.settings.model),
          .updates = 0,
          .tokens_per_update = run.texts_to_train()};
}

double linear_memory(const Context& context, const ClassifierRun& run) {
  const double held = static_cast<double>(resident_memory_bytes()) + kProcessBytes;
  const double fit = kRounding * size_of(run).bytes(context);
  // The model is made into a file in memory.
  const double file = 3.0 * sizeof(float) * static_cast<double>(linear_cost(run).parameters);
  return std::max(static_cast<double>(peak_memory_bytes()), held + std::max(fit, file));
}

RunTime linear_time(const Context& context, const ClassifierRun& run) {
  const LinearSize size = size_of(run);
  return {.seconds = size.seconds(context),
          .basis = fmt::format("{} problems of {} n-grams of texts", size.problems(), size.values)};
}

std::optional<MeasuredFit> fit_measured(const Context& context, const ClassifierRun& run,
                                        TrainingObserver& observer, bool wants_fitted) {
  const ClassifierConfig& model = run.settings.model;
  const KnownTexts& known = run.linear->training;
  NgramFeatures features = run.linear->features;
  const SparseRows rows = training_rows(context, known.texts, features);
  const LinearData data{.rows = rows,
                        .features = features,
                        .truth = known.truth,
                        .texts = known.texts,
                        .task = model.task,
                        .classes = model.classes,
                        .class_weights = run.class_weights};
  const FitObserver watch{
      .works = [&](std::string_view what, double done) { observer.works(what, done); },
      .interrupted = [&] { return observer.request() == Request::kStop; }};
  std::optional<LinearFit> fit =
      fit_linear(context, data, run.settings.linear, run.settings.recipe.seed, watch);
  if (!fit) return std::nullopt;
  const KnownTexts& held = run.linear->validation;
  MeasuredFit done{.fit = std::move(*fit)};
  const LinearModel& linear = done.fit.model;
  if (wants_fitted) done.fitted = predictions(context, linear, rows);
  if (!held.texts.empty()) {
    done.found = measured(predictions(context, linear, held.texts), held.truth, run, linear,
                          run.uses.get(), &done.decided);
  } else if (!done.fit.unseen.empty()) {
    if (run.uses) run.uses->more = missed_lines(done.fit, known.truth, run);
    if (run.settings.linear.folds > 0) done.folds = folded(done.fit, known.truth, run);
    done.found = measured(std::move(done.fit.unseen), known.truth, run, linear, run.uses.get(),
                          &done.decided);
  }
  return done;
}

std::vector<std::pair<std::string, std::string>> choice_in(const SafetensorsMetadata& metadata) {
  std::vector<std::pair<std::string, std::string>> choice;
  for (const std::string_view name : {"weighting", "c", "without_words"}) {
    for (const auto& [key, value] : metadata) {
      if (key == name) choice.emplace_back(key, value);
    }
  }
  return choice;
}

std::string choice_text(const std::vector<std::pair<std::string, std::string>>& choice) {
  std::vector<std::string> parts;
  for (const auto& [name, value] : choice) {
    if (name == "weighting") parts.push_back(fmt::format("weighting {}", value));
    if (name == "c") parts.push_back(fmt::format("C {}", value));
    if (name == "without_words" && value == "true") {
      parts.emplace_back("without the n-grams of words");
    }
  }
  return fmt::format("{}", fmt::join(parts, ", "));
}

TrainResult train_linear(const Context& context, const ClassifierRun& run,
                         const std::filesystem::path& folder, const StartAt& start,
                         TrainingObserver& observer) {
  const double began = monotonic_seconds();
  if (start.resume) {
    require_same_data(folder, run);
  } else {
    write_model_files(folder, model_files(run));
  }
  append_start(folder, start_of_process(0, context.threads(), run.identity));
  observer.begins({});
  std::optional<MeasuredFit> done = fit_measured(context, run, observer, true);
  if (!done) return {.state = {}, .stopped = true};
  const LinearFit& fit = done->fit;
  const Validation training =
      measured(std::move(done->fitted), run.linear->training.truth, run, fit.model);
  const LinearTrial& chosen = fit.trials[fit.chosen];
  const SafetensorsMetadata metadata{{"step", std::to_string(fit.chosen + 1)},
                                     {"weighting", std::string(to_string(chosen.weighting))},
                                     {"c", fmt::format("{}", chosen.c)},
                                     {"without_words", chosen.without_words ? "true" : "false"}};
  write_model_weights(folder, fit.model.tensors(), metadata);
  observer.told(told_of(choice_text(choice_in(metadata)), chosen.without_words));
  TrainResult result;
  result.state = write_records(folder, training, *done, monotonic_seconds() - began);
  result.state.tokens = result.process_tokens = run.texts_to_train();
  result.process_step_seconds = result.state.seconds;
  return result;
}

std::unique_ptr<LinearModel> load_linear(const std::filesystem::path& folder,
                                         const ClassifierSettings& settings) {
  NgramRules rules;
  check_stored((folder / "config.json").string(), [&] {
    resolve(settings.model);
    rules = rules_of(settings);
  });
  const std::string where = (folder / kWeightsName).string();
  Safetensors tensors = read_model_weights(folder);
  if (is_compact(tensors)) tensors = unpacked(tensors, where);
  return std::make_unique<LinearModel>(linear_model_from(tensors, rules, settings.model, where));
}

namespace {

constexpr index kUsualFolds = 5;
constexpr index kFewestOfPart = 50;  // of a part

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
    if (all / part < kFewestOfPart && part > 1) continue;
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

CompactExport export_compact(const std::filesystem::path& model,
                             const std::filesystem::path& folder, index bytes) {
  const LoadedClassifier loaded = load_classifier(model);
  if (loaded.linear == nullptr) {
    throw Error(ErrorCode::kModelWrongKind,
                fmt::format("{}: the model is {}, and only linear classifiers become compact",
                            model.string(), to_string(loaded.config().kind)),
                "train with --model linear, or save half: train with --save-dtype bf16");
  }
  const LinearModel small = pruned(*loaded.linear, bytes);
  const NamedFile config{"config.json", read_model_file(model, "config.json")};
  const SafetensorsMetadata metadata = read_model_weights(model).metadata;  // it may be replaced
  write_model_files(folder, {&config, 1});
  write_model_weights(folder, compact_tensors(small), metadata);
  return {.ngrams = small.features().bias_column(),
          .ngrams_before = loaded.linear->features().bias_column(),
          .bytes = static_cast<index>(std::filesystem::file_size(folder / kWeightsName))};
}

}  // namespace fovea
