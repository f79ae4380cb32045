// SPDX-License-Identifier: Apache-2.0
// Shared by the scores of all kinds of models as JSON.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "fovea/config/json.h"
#include "fovea/metrics/classification.h"

namespace fovea {

void add(Json::Object& object, std::string_view name, Json value);
/// {"value", "low", "high"}
Json json_of_interval(const Interval& interval);
/// Adds "precision", "recall" and "f1", an interval each.
void add_scores(Json::Object& object, const ScoresOf<Interval>& scores);
/// A list of counts for each true class.
Json json_of_matrix(const ConfusionMatrix& matrix);
Json json_of_texts(const std::vector<std::string>& texts);

}  // namespace fovea
