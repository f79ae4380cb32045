// SPDX-License-Identifier: Apache-2.0
// Options of the command line made from a struct's list of fields.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cli/command_line.h"
#include "fovea/config/flags.h"

namespace fovea::cli {

/// The fields of a configuration that a user can set.
std::vector<Field> settable(std::vector<Field> fields);

/// One option for each flag; help shows its default, below the heading of its field or else of the
/// group, unless it has a place above all headings.
std::vector<OptionSpec> options_of(std::span<const Flag> flags, std::string_view group);

/// These options as switches that are given or not: without --no-x, and with no default shown.
std::vector<OptionSpec> said_or_not(std::vector<OptionSpec> options);

/// Warns about environment variables FOVEA_... that no option reads but whose name is near that of
/// an option.
void warn_of_unread_variables(std::span<const OptionSpec> options);

/// Sets fields from the environment, then from the command line. Returns the names of the fields
/// that were set. Throws kOptionValue for a number that is out of the range of its field.
std::vector<std::string> set_from_outside(std::vector<Flag> flags, const Arguments& arguments);

}  // namespace fovea::cli
