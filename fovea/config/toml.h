// SPDX-License-Identifier: Apache-2.0
// Configurations as TOML files that people write.
#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "fovea/config/field.h"

namespace fovea {

/// Sets the fields that the text names and leaves the others, as those that only the command line
/// sets; returns the names of those it set.
/// A key is a field's name, with dashes or underscores, in the table of its struct or at the top
/// level: for "model.head_dim", `head-dim = 64` or, below `[model]`, `head_dim = 64`. The struct
/// may say another name of its table. Throws kConfig, with file:line:column, for text that is no
/// TOML, an unknown key (with the nearest known one), a value of the wrong type or out of range, a
/// field set twice.
std::vector<std::string> set_from_toml(std::vector<Field> fields, std::string_view text,
                                       std::string_view where);

/// Sets the fields that a file names; also throws the errors of read_file.
std::vector<std::string> set_from_toml_file(std::vector<Field> fields,
                                            const std::filesystem::path& path);

/// Every field that a text may set with its value and its help above it, one table for each nested
/// struct. set_from_toml reads it back to the same values. A number that is NaN counts as unset and
/// is left out.
std::string toml_text(std::span<const Field> fields);

}  // namespace fovea
