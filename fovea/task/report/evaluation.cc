// SPDX-License-Identifier: Apache-2.0
#include "fovea/task/report/evaluation.h"

#include <fmt/core.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "fovea/base/file.h"
#include "fovea/config/json.h"
#include "fovea/task/score_json.h"
#include "fovea/task/tag/evaluate.h"
#include "fovea/tensor/checksum.h"
#include "fovea/text/utf8.h"
#include "fovea/train/checkpoint.h"

namespace fovea {

namespace {

// The numbers of a language model, in the order of `fovea eval`.
constexpr std::string_view kOfText[] = {"loss", "perplexity", "bits_per_byte"};

[[noreturn]] void fail_evaluation(const std::filesystem::path& file, const std::string& what) {
  throw Error(ErrorCode::kInputFormat,
              fmt::format("{}: not an evaluation of fovea: {}", file.string(), what),
              "make it by: fovea eval MODEL --test FILE --json > EVALUATION.json");
}

void require(bool holds, const std::string& what) {
  if (!holds) throw Error(ErrorCode::kConfig, what, "");
}

// "accuracy": {"value": .9, "low": .88, "high": .92}
std::vector<ReportNumber> numbers_of(const Json::Object& object) {
  std::vector<ReportNumber> numbers;
  for (const auto& [name, value] : object) {
    if (value.get_if<Json::Object>() == nullptr || value.find("value") == nullptr) continue;
    numbers.push_back({escape_text(name), value.at("value").number(), value.at("low").number(),
                       value.at("high").number()});
  }
  return numbers;
}

double number_or_nan(const Json& json, std::string_view name) {
  const Json* value = json.find(name);
  return value == nullptr ? std::numeric_limits<double>::quiet_NaN() : value->number();
}

// The labels of a classifier or the types of a tagger's spans, with their scores. Files of before
// have none.
void add_classes(const Json& json, const std::string& prefix, ReportEvaluation& evaluation) {
  const Json* types = json.find("types");
  const Json* classes = types != nullptr ? types : json.find("labels");
  if (classes == nullptr) return;
  const bool several = types == nullptr && json.at("task").text() == "multi-label";
  evaluation.class_name = types != nullptr ? Phrase{"type", "类型"}
                          : several        ? Phrase{"label", "标签"}
                                           : Phrase{"class", "类别"};
  for (const Json& one : classes->array()) {
    if (one.find("f1") == nullptr) return;
    const Json& f1 = one.at("f1");
    evaluation.classes.push_back(
        {.name = prefix + escape_text(one.at(types != nullptr ? "type" : "label").text()),
         .support = one.at("support").whole(),
         .predicted = one.at("predicted").whole(),
         .precision = one.at("precision").at("value").number(),
         .recall = one.at("recall").at("value").number(),
         .f1 = {"f1", f1.at("value").number(), f1.at("low").number(), f1.at("high").number()}});
  }
}

std::vector<std::string> texts_of(const Json& json) {
  std::vector<std::string> texts;
  for (const Json& text : json.array()) texts.push_back(text.text());
  return texts;
}

// One label, several, or the number of a regression.
std::string answer_of(const Json& json) {
  if (json.get_if<Json::Array>() == nullptr) {
    const auto* text = json.get_if<std::string>();
    return escape_text(text != nullptr ? *text : json.line());
  }
  std::string all;
  for (const std::string& label : texts_of(json)) {
    all += (all.empty() ? "" : ", ") + escape_text(label);
  }
  return all.empty() ? "–" : all;
}

ReportMistake tagged_mistake_of(const Json& json, const std::string& task) {
  const TaggedMistake tagged{.file = json.at("file").text(),
                             .line = json.at("line").whole(),
                             .words = texts_of(json.at("words")),
                             .truth = texts_of(json.at("tags")),
                             .predicted = texts_of(json.at("predicted"))};
  require(
      tagged.truth.size() == tagged.words.size() && tagged.predicted.size() == tagged.words.size(),
      "a mistake has other numbers of words and tags");
  const bool segments = task == "segment";
  ReportMistake mistake;
  for (std::size_t w = 0; w < tagged.words.size(); ++w) {
    const std::string word = escape_text(tagged.words[w]);
    mistake.text += (segments || w == 0 ? "" : " ") + word;
    if (segments || tagged.truth[w] == tagged.predicted[w]) continue;
    const std::string_view comma = mistake.truth.empty() ? "" : ", ";
    mistake.truth += fmt::format("{}{}/{}", comma, word, escape_text(tagged.truth[w]));
    mistake.predicted += fmt::format("{}{}/{}", comma, word, escape_text(tagged.predicted[w]));
  }
  if (segments) {
    mistake.truth = in_words(tagged.words, tagged.truth);
    mistake.predicted = in_words(tagged.words, tagged.predicted);
  }
  return mistake;
}

void add_mistakes(const Json& json, const std::string& prefix, ReportEvaluation& evaluation) {
  const Json* mistakes = json.find("mistakes");
  if (mistakes == nullptr) return;
  const std::string task = json.at("task").text();
  for (const Json& one : mistakes->array()) {
    ReportMistake mistake;
    if (one.find("words") != nullptr) {
      mistake = tagged_mistake_of(one, task);
    } else {
      const Json* several = one.find("labels");
      mistake = {.place = "",
                 .text = escape_text(one.at("text").text()),
                 .truth = answer_of(several != nullptr ? *several : one.at("label")),
                 .predicted = answer_of(one.at("predicted")),
                 .truth_probability = number_or_nan(one, "label_probability"),
                 .probability = number_or_nan(one, "probability"),
                 .loss = number_or_nan(one, "loss")};
    }
    mistake.place =
        fmt::format("{}{}:{}", prefix, escape_text(one.at("file").text()), one.at("line").whole());
    evaluation.mistakes.push_back(std::move(mistake));
  }
}

// The labels of a classifier, or the types of a tagger's spans; spans of none come last.
std::vector<std::string> labels_of(const Json& json) {
  std::vector<std::string> labels;
  const Json* types = json.find("types");
  for (const Json& label : (types != nullptr ? *types : json.at("labels")).array()) {
    labels.push_back(escape_text(label.at(types != nullptr ? "type" : "label").text()));
  }
  if (types != nullptr) labels.emplace_back("none");
  return labels;
}

ConfusionPlot confusion_of(const Json& json) {
  ConfusionPlot plot;
  plot.labels = labels_of(json);
  const Json::Array& rows = json.at("confusion").array();
  const std::size_t K = plot.labels.size();
  require(K >= 1 && static_cast<index>(K) <= kMostConfusionClasses && rows.size() == K,
          fmt::format("\"confusion\" has {} rows for {} labels", rows.size(), K));
  constexpr index kMostCount = 1'000'000'000'000;  // their sums must not overflow
  for (const Json& row : rows) {
    require(row.array().size() == K, "a row of \"confusion\" has another length");
    for (const Json& count : row.array()) {
      plot.counts.push_back(count.whole());
      require(plot.counts.back() >= 0 && plot.counts.back() <= kMostCount,
              "a count of \"confusion\" is negative or above 10^12");
    }
  }
  return plot;
}

ReliabilityPlot reliability_of(const Json& json) {
  ReliabilityPlot plot;
  for (const Json& bin : json.at("bins").array()) {
    const ReliabilityBar bar{.low = bin.at("low").number(),
                             .high = bin.at("high").number(),
                             .count = bin.at("count").whole(),
                             .confidence = bin.at("confidence").number(),
                             .accuracy = bin.at("accuracy").number()};
    const auto is_share = [](double x) { return x >= 0 && x <= 1; };
    require(is_share(bar.low) && is_share(bar.high) && bar.low < bar.high && bar.count >= 0 &&
                is_share(bar.confidence) && is_share(bar.accuracy),
            "a bin of \"reliability\" is outside of [0, 1]");
    plot.bars.push_back(bar);
  }
  return plot;
}

std::vector<NamedCurve> curves_of(const Json& json) {
  std::vector<NamedCurve> curves;
  for (const Json& one : json.array()) {
    const Json& label = one.at("label");
    NamedCurve curve{.name = label.is_null() ? "" : escape_text(label.text())};
    for (const Json& point : one.at("points").array()) {
      const Json::Array& numbers = point.array();
      require(numbers.size() == 3, "a point of \"precision_recall\" has not 3 numbers");
      const double recall = numbers[0].number(), precision = numbers[1].number();
      require(recall >= 0 && recall <= 1 && precision >= 0 && precision <= 1,
              "a point of \"precision_recall\" is outside of [0, 1]");
      curve.points.push_back({recall, precision});
    }
    curves.push_back(std::move(curve));
  }
  return curves;
}

double confidence_of(const Json& json) {
  const double confidence = json.at("confidence").number();
  require(confidence > 0 && confidence < 1, "\"confidence\" is outside of (0, 1)");
  return confidence;
}

// The scores of a translator, or of translations alone, without intervals.
ReportEvaluation evaluation_of_translations(const Json& json) {
  ReportEvaluation evaluation;
  for (const std::string_view name : {"loss", "perplexity"}) {
    if (const Json* value = json.find(name)) {
      evaluation.numbers.push_back({std::string(name), value->number()});
    }
  }
  for (const Json& metric : json.at("metrics").array()) {
    evaluation.numbers.push_back(
        {escape_text(metric.at("name").text()), metric.at("score").number()});
  }
  require(!evaluation.numbers.empty(), "it has no numbers");
  return evaluation;
}

// The numbers of a tagger of several columns, each by its name, as in metrics.jsonl.
ReportEvaluation evaluation_of_columns(const Json& json) {
  ReportEvaluation evaluation;
  evaluation.numbers.push_back({"mean", json.at("mean").number()});
  for (const Json& column : json.at("columns").array()) {
    const std::string name = escape_text(column.at("column").text());
    evaluation.confidence = confidence_of(column);
    for (ReportNumber& number : numbers_of(column.object())) {
      number.name = fmt::format("{}_{}", number.name, name);
      evaluation.numbers.push_back(std::move(number));
    }
    add_classes(column, name + ": ", evaluation);
    add_mistakes(column, name + ": ", evaluation);
  }
  return evaluation;
}

ModelKind kind_scored(const std::string& task) {
  for (const TaskRow& row : task_table()) {
    if (row.scores(task)) return row.kind;
  }
  throw Error(ErrorCode::kConfig, "its task is " + task, "");
}

EvaluationFile evaluation_of(const Json& json) {
  if (json.find("columns") != nullptr) return {ModelKind::kTagger, evaluation_of_columns(json)};
  ReportEvaluation evaluation;
  if (json.find("task") == nullptr) {
    for (const std::string_view name : kOfText) {
      evaluation.numbers.push_back({std::string(name), json.at(name).number()});
    }
    return {ModelKind::kLanguageModel, std::move(evaluation)};
  }
  const std::string task = json.at("task").text();
  const ModelKind kind = kind_scored(task);
  if (kind == ModelKind::kTranslator) return {kind, evaluation_of_translations(json)};
  evaluation.confidence = confidence_of(json);
  evaluation.numbers = numbers_of(json.object());
  require(!evaluation.numbers.empty(), "it has no numbers");
  add_classes(json, "", evaluation);
  add_mistakes(json, "", evaluation);
  if (json.find("confusion") != nullptr) evaluation.confusion = confusion_of(json);
  if (const Json* reliability = json.find("reliability")) {
    evaluation.reliability = reliability_of(*reliability);
    evaluation.of_decisions = task == "multi-label";
  }
  if (const Json* curves = json.find("precision_recall")) {
    evaluation.precision_recall = curves_of(*curves);
  }
  return {kind, std::move(evaluation)};
}

constexpr std::string_view kModel = "model";

std::string model_of(const Json& json) {
  const Json* model = json.find(kModel);
  return model == nullptr ? "" : model->text();
}

}  // namespace

Json evaluation_of(const Json& scores, std::string_view model) {
  Json::Object object;
  for (const auto& [name, value] : scores.object()) add(object, name, value);
  add(object, kModel, std::string(model));
  return Json(std::move(object));
}

std::string evaluation_line(const Json& scores, const std::filesystem::path& folder,
                            const std::vector<std::string>& adapters) {
  std::string model = config_checksum(folder);
  if (adapters.empty()) return evaluation_of(scores, model).line() + "\n";
  Json::Object object = scores.object();
  object.emplace_back("adapters", Json::Array(adapters.begin(), adapters.end()));
  for (const std::string& one : adapters) model += "\n" + one;
  return evaluation_of(Json(std::move(object)), xxh3_128(model)).line() + "\n";
}

bool may_be_of(const EvaluationFile& evaluation, const std::filesystem::path& folder) {
  if (evaluation.model.empty() || evaluation.model == config_checksum(folder)) return true;
  const std::filesystem::path all = checkpoints_of(folder);
  const std::vector<index> steps = checkpoint_steps(all);
  return std::any_of(steps.begin(), steps.end(), [&](index step) {
    try {
      return evaluation.model == config_checksum(checkpoint_path(all, step));
    } catch (const Error&) {  // damaged: `fovea inspect --verify` says so
      return false;
    }
  });
}

EvaluationFile read_evaluation(const std::filesystem::path& file) {
  const std::string text = read_file(file);
  try {
    const Json json = parse_json(text, {file.string()});
    EvaluationFile found = evaluation_of(json);
    found.model = model_of(json);
    found.evaluation.source = escape_text(file.string());
    return found;
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kConfig) throw;
    fail_evaluation(file, error.what());
  }
}

}  // namespace fovea
