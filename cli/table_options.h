// SPDX-License-Identifier: Apache-2.0
// The options that say how a file of texts is read.
#pragma once

#include <vector>

#include "fovea/config/flags.h"
#include "fovea/data/table/table_options.h"

namespace fovea::cli {

/// All options, and those for texts, or pairs of them, of which no labels are read.
std::vector<Flag> table_flags(TableOptions& table);
std::vector<Flag> text_table_flags(TableOptions& table);
std::vector<Flag> pair_table_flags(TableOptions& table);

}  // namespace fovea::cli
