// SPDX-License-Identifier: Apache-2.0
// fovea eval of a classifier.
#pragma once

#include <string>
#include <vector>

#include "cli/command_line.h"

namespace fovea::cli {

/// The options that only classifiers have.
std::vector<OptionSpec> classifier_test_options();

/// Prints the score of a classifier, and writes its pictures. Returns the exit status.
int eval_classifier(const Arguments& arguments, const std::vector<std::string>& files);

}  // namespace fovea::cli
