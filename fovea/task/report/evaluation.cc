// SPDX-License-Identifier: Apache-2.0
#include "fovea/task/report/evaluation.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "fovea/base/file.h"
#include "fovea/config/json.h"
#include "fovea/text/utf8.h"

namespace fovea {

namespace {

// Of a language model, in the order of `fovea eval`.
constexpr std::string_view kOfText[] = {"loss", "perplexity", "bits_per_byte"};

[[noreturn]] void fail_evaluation(const std::filesystem::path& file, const std::string& what) {
  throw Error(ErrorCode::kInputFormat,
              fmt::format("{}: not an evaluation of fovea: {}", file.string(), what),
              "make it by: fovea eval DIR --test FILE --json > EVALUATION.json");
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

ConfusionPlot confusion_of(const Json& json) {
  ConfusionPlot plot;
  for (const Json& label : json.at("labels").array()) {
    plot.labels.push_back(escape_text(label.at("label").text()));
  }
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

ReportEvaluation evaluation_of(const Json& json) {
  ReportEvaluation evaluation;
  if (json.find("task") == nullptr) {
    for (const std::string_view name : kOfText) {
      evaluation.numbers.push_back({std::string(name), json.at(name).number()});
    }
    return evaluation;
  }
  evaluation.confidence = json.at("confidence").number();
  require(evaluation.confidence > 0 && evaluation.confidence < 1,
          "\"confidence\" is outside of (0, 1)");
  evaluation.numbers = numbers_of(json.object());
  if (json.find("confusion") != nullptr) evaluation.confusion = confusion_of(json);
  if (const Json* reliability = json.find("reliability")) {
    evaluation.reliability = reliability_of(*reliability);
    evaluation.of_decisions = json.at("task").text() == "multi-label";
  }
  return evaluation;
}

}  // namespace

ReportEvaluation read_evaluation(const std::filesystem::path& file) {
  const std::string text = read_file(file);
  try {
    ReportEvaluation evaluation = evaluation_of(parse_json(text, {file.string()}));
    evaluation.source = escape_text(file.string());
    return evaluation;
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kConfig) throw;
    fail_evaluation(file, error.what());
  }
}

}  // namespace fovea
