// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "fovea/train/history.h"

namespace fovea {

/// The losses of a run over its updates, as SVG.
std::string loss_curve(const History& history);

}  // namespace fovea
