// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "fovea/train/history.h"

namespace fovea {

/// The file of the curves in the folder of a run.
inline constexpr std::string_view kCurvesName = "loss.svg";

/// The losses of a run over its updates and, if it was observed, what its attention looks like: a
/// page of plots as SVG.
std::string training_curves(const History& history, std::string_view loss_unit);

}  // namespace fovea
