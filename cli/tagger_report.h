// SPDX-License-Identifier: Apache-2.0
// The score of a tagger, for people.
#pragma once

#include <span>
#include <string>

#include "fovea/task/tag/evaluate.h"

namespace fovea::cli {

/// The report on several columns, each in turn, and the mean of their main numbers.
std::string report_of(std::span<const TaggerScore> columns);

}  // namespace fovea::cli
