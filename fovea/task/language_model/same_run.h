// SPDX-License-Identifier: Apache-2.0
// Checks whether a run may go on with other settings.
#pragma once

#include <string>
#include <vector>

#include "fovea/task/language_model/language_model.h"

namespace fovea {

/// A run must keep its model, its tokenizer, how lines are cut and where the text is split. Throws
/// kConfig, which names the option, the value of the run and the given one; and what resolve()
/// throws. The names of text files may change: require_same_text checks the text.
void require_same_run(const LanguageModelSettings& began, const LanguageModelSettings& given);

/// The options that affect updates, may change, and differ from those of the checkpoint: "--lr: the
/// checkpoint has 0.001, given is 0.002". The end of the run is one of them if the schedule depends
/// on it.
std::vector<std::string> changed_options(const LanguageModelSettings& checkpoint,
                                         const LanguageModelSettings& given);

/// Throws kConfig, which names the files, unless `given` has the same text as the run that began
/// with these settings and has this identity.
void require_same_text(const LanguageModelSettings& began, const RunIdentity& identity,
                       const LanguageModelRun& given);

}  // namespace fovea
