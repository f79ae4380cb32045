// SPDX-License-Identifier: Apache-2.0
// fovea eval of a tagger or a segmenter.
#pragma once

#include <string>
#include <vector>

#include "cli/command_line.h"

namespace fovea::cli {

/// The options that taggers have; `errors` is that of classifiers, too.
std::vector<OptionSpec> tagger_test_options();

/// Prints the score of a tagger. Returns the exit status.
int eval_tagger(const Arguments& arguments, const std::vector<std::string>& files);

}  // namespace fovea::cli
