// SPDX-License-Identifier: Apache-2.0
// All options of a training: the settings of the model and its recipe, and how this process is run.
// One list of fields serves options, environment and TOML.
#pragma once

#include <string>

#include "cli/command_line.h"
#include "cli/output.h"
#include "fovea/task/language_model_settings.h"

namespace fovea::cli {

enum class ProgressKind { kAuto, kPlain, kNone };

inline constexpr EnumName<ProgressKind> kProgressKindNames[] = {
    {ProgressKind::kAuto, "auto"}, {ProgressKind::kPlain, "plain"}, {ProgressKind::kNone, "none"}};
inline std::span<const EnumName<ProgressKind>> enum_names(ProgressKind) {
  return kProgressKindNames;
}

struct RunOptions {
  std::string output;
  std::string preset;
  int threads = 0;
  bool json = false;
  ProgressKind progress = ProgressKind::kAuto;
  MessageOptions messages;

  template <class Visitor>
  void visit_fields(Visitor&& visit) {
    visit("output", output, "folder of the run and its model");
    visit("preset", preset, "start from these settings instead of the defaults");
    visit("threads", threads, "threads to work on; 0: all cores");
    visit("json", json, "print the result as one JSON object");
    visit("progress", progress, "how to show progress; auto: a bar on a terminal, else lines");
    messages.visit_fields(visit);
  }
};

struct TrainLmOptions {
  LanguageModelSettings settings;
  RunOptions run;

  template <class Visitor>
  void visit_fields(Visitor&& visit) {
    settings.visit_fields(visit);
    visit("run", run, "how this process is run");
  }
};

std::vector<OptionSpec> train_lm_options();
/// The placeholder of an option of train lm, also where its type alone does not say what it must
/// be.
std::string placeholder_of(const OptionSpec& option);

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
