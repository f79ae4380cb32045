// SPDX-License-Identifier: Apache-2.0
// The score of a tagger, for people.
#pragma once

#include <string>

#include "fovea/task/tagger_score.h"

namespace fovea::cli {

std::string report_of(const TaggerScore& score);

}  // namespace fovea::cli
