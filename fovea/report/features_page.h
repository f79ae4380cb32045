// SPDX-License-Identifier: Apache-2.0
// A page of the features that speak most for each label of a linear model.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "fovea/report/html.h"

namespace fovea {

/// A label, and features with their weights, the largest first.
struct LabelFeatures {
  std::string label;
  std::vector<std::pair<std::string, double>> features = {};
};

/// One HTML file. `model` names the model; texts may have any bytes, weights must be finite.
std::string draw_features_page(const std::vector<LabelFeatures>& labels, const std::string& model,
                               PageLanguage language);

}  // namespace fovea
