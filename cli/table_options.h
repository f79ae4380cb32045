// SPDX-License-Identifier: Apache-2.0
// The options that say how a file of texts, or of tagged sentences, is read.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "fovea/config/flags.h"
#include "fovea/data/table/table_options.h"
#include "fovea/data/tagged/tagged_reader.h"

namespace fovea::cli {

/// All options, and those for texts, or pairs of them, of which no labels are read.
std::vector<Flag> table_flags(TableOptions& table);
std::vector<Flag> text_table_flags(TableOptions& table);
std::vector<Flag> pair_table_flags(TableOptions& table);

/// The options that say how a file of tagged sentences is read, and those for sentences of which no
/// tags are read.
std::vector<Flag> tagged_flags(TaggedOptions& table);
std::vector<Flag> untagged_flags(TaggedOptions& table);
/// Throws kUsage for a column that was said (a field's name) of a format that none of the files
/// has.
void require_column_effect(std::string_view command, std::span<const std::string> said,
                           std::span<const std::string> files, const TaggedOptions& table);

}  // namespace fovea::cli
