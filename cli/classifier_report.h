// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "fovea/task/classify/score.h"

namespace fovea::cli {

/// The score as text for people: numbers with their intervals, a table of the classes, who was
/// taken for whom, and the worst mistakes. Columns stand below each other whatever the script of
/// the labels.
std::string report_of(const ClassifierScore& score);

}  // namespace fovea::cli
