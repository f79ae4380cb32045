// SPDX-License-Identifier: Apache-2.0
// All options of train translate: the settings of the model and its recipe, and how this process is
// run.
#pragma once

#include <string>
#include <vector>

#include "cli/run_options.h"
#include "fovea/base/option.h"
#include "fovea/task/translate/settings.h"

namespace fovea::cli {

struct TrainTranslateOptions {
  TranslatorSettings settings;
  RunOptions run = {{.presets = [] { return names_in(translator_presets(), "|"); }}};

  template <class Visitor>
  void visit_fields(Visitor&& visit) {
    settings.visit_fields(visit);
    visit("run", run, "how this process is run");
  }
};

std::vector<OptionSpec> train_translate_options();

/// How this process is run, from --config, the environment and the options.
RunOptions translate_run_options(const Arguments& arguments);

/// `begin` (the defaults, or the settings of a resumed run), changed by the preset, --config, the
/// environment and the options; later ones override earlier ones. Paths become absolute, so that a
/// run can be resumed from any folder.
TranslatorSettings translate_settings(TranslatorSettings begin, const Arguments& arguments,
                                      const RunOptions& run);

/// The settings as TOML that --config can read.
std::string config_toml(const TranslatorSettings& settings, const RunOptions& run);

}  // namespace fovea::cli
