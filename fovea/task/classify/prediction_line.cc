// SPDX-License-Identifier: Apache-2.0
#include "fovea/task/classify/prediction_line.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "fovea/config/field.h"
#include "fovea/linear/decide.h"
#include "fovea/text/utf8.h"

namespace fovea {

namespace {

bool tells_one_label(ClassifierTask task) {
  return task == ClassifierTask::kBinary || task == ClassifierTask::kSingleLabel;
}

// Those above the threshold.
bool tells_any_number(const ClassifierAnswers& answers, const PredictionChoice& choice) {
  return answers.task == ClassifierTask::kMultiLabel && choice.top == 0;
}

}  // namespace

void check_options(const PredictionChoice& choice) { check_ranges(choice); }

std::vector<index> chosen_labels(const ClassifierAnswers& answers, Vec<const float> probabilities,
                                 const PredictionChoice& choice) {
  const std::vector<float> decided =
      answers.thresholds.empty()
          ? std::vector<float>()
          : decisive(answers.task, {probabilities.begin(), probabilities.end()},
                     answers.thresholds);
  if (!decided.empty()) probabilities = decided;
  std::vector<index> order(static_cast<std::size_t>(probabilities.size));
  std::iota(order.begin(), order.end(), index{0});
  const auto above = [&](index a, index b) { return probabilities[a] > probabilities[b]; };
  const bool any_number = tells_any_number(answers, choice);
  if (!any_number && choice.top <= 1) {
    return {std::max_element(probabilities.begin(), probabilities.end()) - probabilities.begin()};
  }
  std::stable_sort(order.begin(), order.end(), above);
  if (any_number) {
    std::erase_if(order, [&](index k) { return !(probabilities[k] >= choice.threshold); });
  } else {
    order.resize(std::min(order.size(), static_cast<std::size_t>(choice.top)));
  }
  return order;
}

bool abstains(const ClassifierAnswers& answers, Vec<const float> values,
              const PredictionChoice& choice) {
  if (choice.min_probability == 0 || !tells_one_label(answers.task)) return false;
  return !(values[chosen_labels(answers, values, {})[0]] >= choice.min_probability);
}

float certainty(const ClassifierAnswers& answers, Vec<const float> values,
                const PredictionChoice& choice) {
  if (answers.task != ClassifierTask::kMultiLabel) {
    return *std::max_element(values.begin(), values.end());
  }
  const std::vector<float> decided =
      decisive_rows(answers.task, {values.begin(), values.end()}, answers.thresholds);
  float nearest = 1;
  for (const float value : decided) {
    nearest = std::min(nearest, std::abs(value - static_cast<float>(choice.threshold)));
  }
  return nearest;
}

std::vector<std::string> prediction_columns(const ClassifierAnswers& answers,
                                            const PredictionChoice& choice) {
  if (answers.task == ClassifierTask::kRegression) return {"value"};
  if (tells_any_number(answers, choice)) return {"labels", "probabilities"};
  std::vector<std::string> columns;
  const auto count = std::min(static_cast<index>(answers.labels.size()), choice.top);
  for (index n = 1; n <= std::max<index>(count, 1); ++n) {
    const std::string number = n == 1 ? "" : fmt::format("_{}", n);
    columns.push_back("label" + number);
    columns.push_back("probability" + number);
  }
  return columns;
}

std::vector<std::string> prediction_fields(const ClassifierAnswers& answers,
                                           Vec<const float> values, const PredictionChoice& choice,
                                           std::string_view between) {
  if (answers.task == ClassifierTask::kRegression) {
    return {number_text(values[0], answers.numbers)};
  }
  std::vector<std::string> fields, labels, probabilities;
  for (const index k : chosen_labels(answers, values, choice)) {
    labels.push_back(answers.labels[static_cast<std::size_t>(k)]);
    probabilities.push_back(fmt::format("{}", values[k]));
  }
  if (tells_any_number(answers, choice)) {
    return {fmt::format("{}", fmt::join(labels, between)),
            fmt::format("{}", fmt::join(probabilities, between))};
  }
  if (abstains(answers, values, choice)) labels[0].clear();
  for (std::size_t n = 0; n < labels.size(); ++n) {
    fields.push_back(std::move(labels[n]));
    fields.push_back(std::move(probabilities[n]));
  }
  return fields;
}

std::string number_text(float value, const NumberScale& numbers) {
  const double number = numbers.from_model(value);
  return fmt::format("{:.{}g}", number, numbers.digits(number));
}

std::string prediction_text(const ClassifierAnswers& answers, Vec<const float> values,
                            const PredictionChoice& choice) {
  std::string line;
  const auto add = [&](const std::string& text) { line += (line.empty() ? "" : "\t") + text; };
  if (answers.task == ClassifierTask::kRegression) {
    for (const float value : values) add(number_text(value, answers.numbers));
    return line;
  }
  bool hides = abstains(answers, values, choice);
  for (const index k : chosen_labels(answers, values, choice)) {
    const std::string& label = answers.labels[static_cast<std::size_t>(k)];
    add(fmt::format("{}\t{}", std::exchange(hides, false) ? "" : escape_text(label), values[k]));
  }
  return line;
}

std::vector<std::string> prediction_keys(const ClassifierAnswers& answers) {
  if (answers.task == ClassifierTask::kRegression) return {"value"};
  if (answers.task == ClassifierTask::kMultiLabel) return {"labels", "probabilities"};
  return {"label", "probability", "probabilities"};
}

std::string prediction_json(const ClassifierAnswers& answers, Vec<const float> values,
                            const PredictionChoice& choice) {
  return Json(prediction_object(answers, values, choice)).line();
}

Json::Object prediction_object(const ClassifierAnswers& answers, Vec<const float> values,
                               const PredictionChoice& choice) {
  Json::Object object;
  if (answers.task == ClassifierTask::kRegression) {
    // Numbers have the same digits as in the text.
    Json::Array numbers;
    for (const float value : values) {
      numbers.emplace_back(std::stod(number_text(value, answers.numbers)));
    }
    if (numbers.size() == 1) {
      object.emplace_back("value", std::move(numbers[0]));
    } else {
      object.emplace_back("values", std::move(numbers));
    }
    return object;
  }
  const std::vector<index> chosen = chosen_labels(answers, values, choice);
  Json::Array names;
  Json::Object probabilities;
  for (const index k : chosen) {
    names.emplace_back(answers.labels[static_cast<std::size_t>(k)]);
    probabilities.emplace_back(answers.labels[static_cast<std::size_t>(k)], values[k]);
  }
  if (answers.task == ClassifierTask::kMultiLabel) {
    object.emplace_back("labels", std::move(names));
  } else {
    object.emplace_back("label", abstains(answers, values, choice) ? Json() : std::move(names[0]));
    object.emplace_back("probability", values[chosen[0]]);
  }
  object.emplace_back("probabilities", std::move(probabilities));
  return object;
}

}  // namespace fovea
