// SPDX-License-Identifier: Apache-2.0
// fovea eval of files of translations: no model.
#pragma once

#include <string>
#include <vector>

#include "cli/command_line.h"
#include "fovea/task/translate/evaluate.h"

namespace fovea::cli {

/// The options of translations, of files or of a translator.
std::vector<OptionSpec> translation_test_options();

/// Whether the arguments name translations instead of a model.
bool asks_for_translations(const Arguments& arguments);

/// The files that the options name.
std::vector<std::string> translation_files(const Arguments& arguments);

/// How translations are scored, and whether each line, too.
TranslationScoreOptions score_options(const Arguments& arguments,
                                      TranslationScoreOptions begin = {});
SentenceScores sentence_scores_of(const Arguments& arguments);

/// Prints the scores of the files. Returns the exit status.
int eval_translations(const Arguments& arguments);

/// Warns where the case of letters makes right words wrong.
void warn_of_case(const TranslationScore& score);

/// The scores as the command prints them.
std::string report_of(const TranslationScore& score, SentenceScores sentences);

}  // namespace fovea::cli
