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

/// Sets what the environment and then what the command line says; returns the fields' names.
std::vector<std::string> set_from_outside(std::vector<Flag> flags, const Arguments& arguments);

}  // namespace fovea::cli
