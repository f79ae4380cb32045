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

/// One option for each flag; help shows its default.
std::vector<OptionSpec> options_of(std::span<const Flag> flags, std::string_view group);

/// The same for what is said or not said: no --no-x, and no default to tell.
std::vector<OptionSpec> said_or_not(std::vector<OptionSpec> options);

/// Gives an option its short letter, or its other spelling.
void also_called(std::vector<OptionSpec>& options, std::string_view name, std::string_view also);

/// Warns of variables FOVEA_... that no option reads, where one was probably meant.
void warn_of_unread_variables(std::span<const OptionSpec> options);

/// Sets what the environment and then what the command line says; returns the fields' names.
std::vector<std::string> set_from_outside(std::vector<Flag> flags, const Arguments& arguments);

}  // namespace fovea::cli
