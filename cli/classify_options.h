// SPDX-License-Identifier: Apache-2.0
// All options of train classify: the settings of the model and its recipe, and how this process is
// run.
#pragma once

#include <string>
#include <vector>

#include "cli/run_options.h"
#include "fovea/task/classify/settings.h"

namespace fovea::cli {

struct TrainClassifyOptions {
  ClassifierSettings settings;
  RunOptions run;

  template <class Visitor>
  void visit_fields(Visitor&& visit) {
    settings.visit_fields(visit);
    visit("run", run, "how this process is run");
  }
};

/// Those of train classify or, of pairs, of train pairs.
std::vector<OptionSpec> train_classify_options(InputKind input = InputKind::kText);

/// How this process is run, from --config, the environment and the options.
RunOptions classify_run_options(const Arguments& arguments);

/// The defaults of the input that these name, or else of `input`.
ClassifierSettings classify_defaults(const Arguments& arguments,
                                     InputKind input = InputKind::kText);

/// The options whose defaults --input npz changes, with these: "--pooling attention".
std::vector<std::string> defaults_of_npz();

/// `begin` (the defaults, or the settings of a resumed run), changed by --config, the environment
/// and the options; later ones override earlier ones. Paths become absolute, so that a run can be
/// resumed from any folder.
ClassifierSettings classify_settings(ClassifierSettings begin, const Arguments& arguments);

}  // namespace fovea::cli
