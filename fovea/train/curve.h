// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "fovea/train/history.h"

namespace fovea {

/// The losses of a run over its updates and, if it was observed, what its attention looks like: a
/// page of plots as SVG.
std::string training_curves(const History& history);

}  // namespace fovea
