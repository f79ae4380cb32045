// SPDX-License-Identifier: Apache-2.0
// fovea eval of files of translations: no model.
#pragma once

#include <string>
#include <vector>

#include "cli/command_line.h"
#include "fovea/task/translation_score.h"

namespace fovea::cli {

/// The options that only translations have.
std::vector<OptionSpec> translation_test_options();

/// Whether the arguments name translations instead of a model.
bool asks_for_translations(const Arguments& arguments);

/// The files that the options name.
std::vector<std::string> translation_files(const Arguments& arguments);

/// Prints the scores of the files. Returns the exit status.
int eval_translations(const Arguments& arguments);

/// The scores as the command prints them.
std::string report_of(const TranslationScore& score, SentenceScores sentences);

}  // namespace fovea::cli
