// SPDX-License-Identifier: Apache-2.0
// fovea eval of a translator.
#pragma once

#include <vector>

#include "cli/command_line.h"

namespace fovea::cli {

/// The options that only translators have.
std::vector<OptionSpec> translator_test_options();

int eval_translator(const Arguments& arguments);

}  // namespace fovea::cli
