// SPDX-License-Identifier: Apache-2.0
// May a run go on with these settings?
#pragma once

#include <string>
#include <vector>

#include "fovea/task/language_model.h"

namespace fovea {

/// What makes a run what it is cannot change: the model, the tokenizer, the kind of data, and where
/// the text is cut. Throws kConfig, which names the option, what the run has and what was given;
/// what resolve() throws. Files that have other names may hold the same text: see below.
void require_same_run(const LanguageModelSettings& began, const LanguageModelSettings& given);

/// The options that may change and decide what an update does, where they are not those of the
/// checkpoint: "--lr: the checkpoint has 0.001, given is 0.002". The end of the run is one of them
/// where the schedule ends with it.
std::vector<std::string> changed_options(const LanguageModelSettings& checkpoint,
                                         const LanguageModelSettings& given);

/// Throws kConfig, which names the files, unless `given` reads the text of the run that began with
/// these settings and has this identity.
void require_same_text(const LanguageModelSettings& began, const RunIdentity& identity,
                       const LanguageModelRun& given);

}  // namespace fovea
