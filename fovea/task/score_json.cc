// SPDX-License-Identifier: Apache-2.0
#include "fovea/task/score_json.h"

#include <utility>

namespace fovea {

void add(Json::Object& object, std::string_view name, Json value) {
  object.push_back({std::string(name), std::move(value)});
}

Json json_of_interval(const Interval& interval) {
  Json::Object object;
  add(object, "value", interval.value);
  add(object, "low", interval.low);
  add(object, "high", interval.high);
  return object;
}

void add_scores(Json::Object& object, const ScoresOf<Interval>& scores) {
  add(object, "precision", json_of_interval(scores.precision));
  add(object, "recall", json_of_interval(scores.recall));
  add(object, "f1", json_of_interval(scores.f1));
}

Json json_of_matrix(const ConfusionMatrix& matrix) {
  Json::Array rows;
  for (index t = 0; t < matrix.classes; ++t) {
    Json::Array row;
    for (index p = 0; p < matrix.classes; ++p) row.emplace_back(matrix.at(t, p));
    rows.emplace_back(std::move(row));
  }
  return rows;
}

Json json_of_texts(const std::vector<std::string>& texts) {
  return Json::Array(texts.begin(), texts.end());
}

}  // namespace fovea
