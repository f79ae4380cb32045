// SPDX-License-Identifier: Apache-2.0
// Shared by the scores of all kinds of models as JSON.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "fovea/config/json.h"
#include "fovea/metrics/classification.h"

namespace fovea {

inline void add(Json::Object& object, std::string_view name, Json value) {
  object.push_back({std::string(name), std::move(value)});
}

/// {"value", "low", "high"}
inline Json json_of_interval(const Interval& interval) {
  Json::Object object;
  add(object, "value", interval.value);
  add(object, "low", interval.low);
  add(object, "high", interval.high);
  return object;
}

/// Adds "precision", "recall" and "f1", an interval each.
inline void add_scores(Json::Object& object, const ScoresOf<Interval>& scores) {
  add(object, "precision", json_of_interval(scores.precision));
  add(object, "recall", json_of_interval(scores.recall));
  add(object, "f1", json_of_interval(scores.f1));
}

/// A list of counts for each true class.
inline Json json_of_matrix(const ConfusionMatrix& matrix) {
  Json::Array rows;
  for (index t = 0; t < matrix.classes; ++t) {
    Json::Array row;
    for (index p = 0; p < matrix.classes; ++p) row.emplace_back(matrix.at(t, p));
    rows.emplace_back(std::move(row));
  }
  return rows;
}

inline Json json_of_texts(const std::vector<std::string>& texts) {
  return Json::Array(texts.begin(), texts.end());
}

}  // namespace fovea
