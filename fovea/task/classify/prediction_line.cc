// SPDX-License-Identifier: Apache-2.0
#include "fovea/task/classify/prediction_line.h"

#include <fmt/core.h>

#include <algorithm>
#include <numeric>
#include <utility>

#include "fovea/config/field.h"
#include "fovea/config/json.h"
#include "fovea/linear/decide.h"
#include "fovea/text/utf8.h"

namespace fovea {

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
  const bool any_number = answers.task == ClassifierTask::kMultiLabel && choice.top == 0;
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
  for (const index k : chosen_labels(answers, values, choice)) {
    const std::string& label = answers.labels[static_cast<std::size_t>(k)];
    add(fmt::format("{}\t{}", escape_text(label), values[k]));
  }
  return line;
}

std::string prediction_json(const ClassifierAnswers& answers, Vec<const float> values,
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
    return Json(std::move(object)).line();
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
    object.emplace_back("label", std::move(names[0]));
    object.emplace_back("probability", values[chosen[0]]);
  }
  object.emplace_back("probabilities", std::move(probabilities));
  return Json(std::move(object)).line();
}

}  // namespace fovea
