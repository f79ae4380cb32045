// SPDX-License-Identifier: Apache-2.0
// --color, --quiet, --verbose and --log-file of commands that are not configured by TOML.
#pragma once

#include <vector>

#include "cli/command_line.h"

namespace fovea::cli {

std::vector<OptionSpec> message_options();

/// Gives those options, among any others, their letters, and a log its FILE.
void dress_message_options(std::vector<OptionSpec>& options);

/// As the options, or else the environment, say. Throws as set_messages does.
void set_messages_from(const Arguments& arguments);

}  // namespace fovea::cli
