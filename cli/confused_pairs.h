// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>

#include "fovea/metrics/classification.h"

namespace fovea::cli {

/// The twenty pairs of classes that are confused most often, a line each: how often, and "A taken
/// for B", with what `name` calls a class.
std::string confused_pairs(const ConfusionMatrix& matrix,
                           const std::function<std::string(index)>& name);

}  // namespace fovea::cli
