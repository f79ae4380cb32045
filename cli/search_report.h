// SPDX-License-Identifier: Apache-2.0
// What a search for settings found, for people.
#pragma once

#include <span>
#include <string>

#include "fovea/task/classify/trials.h"

namespace fovea::cli {

/// Lines: the best trials, the best loss so far over the trials, and what was chosen and why.
std::string search_report(std::span<const SearchTrial> trials, std::size_t best);

}  // namespace fovea::cli
