// SPDX-License-Identifier: Apache-2.0
// All options of train lm: the settings of the model and its recipe, and how this process is run.
#pragma once

#include <string>

#include "cli/run_options.h"
#include "fovea/base/option.h"
#include "fovea/task/language_model/settings.h"

namespace fovea::cli {

struct TrainLmOptions {
  LanguageModelSettings settings;
  RunOptions run = {{.presets = [] { return names_in(language_model_presets(), "|"); }}};

  template <class Visitor>
  void visit_fields(Visitor&& visit) {
    settings.visit_fields(visit);
    visit("run", run, "how this process is run");
  }
};

std::vector<OptionSpec> train_lm_options();
/// A model that is no Transformer has no positions, one layer and, if it is an attention RNN, one
/// head, unless `set`, the names of the fields that were given, has them. A field that means
/// nothing to the model keeps its default: throws kOptionValue if it was given another value.
void take_usual_sizes(LanguageModelConfig& model, const std::vector<std::string>& set);

/// How this process is run, from --config, the environment and the options.
RunOptions run_options_of(const Arguments& arguments);

/// `begin` (the defaults, or the settings of a resumed run), changed by the preset, --config, the
/// environment and the options; later ones override earlier ones. Paths of texts become absolute,
/// so that a run can be resumed from any folder.
LanguageModelSettings settings_of(LanguageModelSettings begin, const Arguments& arguments,
                                  const RunOptions& run);

/// The settings as TOML that --config can read.
std::string config_toml(const LanguageModelSettings& settings, const RunOptions& run);

}  // namespace fovea::cli
