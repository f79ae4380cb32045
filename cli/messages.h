// SPDX-License-Identifier: Apache-2.0
// --color, --quiet, --verbose and --log-file for commands without a TOML configuration.
#pragma once

#include <vector>

#include "cli/command_line.h"

namespace fovea::cli {

std::vector<OptionSpec> message_options();

/// Calls set_messages with the options, or else the environment. Throws as set_messages does.
void set_messages_from(const Arguments& arguments);

}  // namespace fovea::cli
