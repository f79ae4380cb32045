// SPDX-License-Identifier: Apache-2.0
// Shared by all training commands: how the process is run, and settings that come from options, the
// environment and TOML by one list of fields.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cli/command_line.h"
#include "cli/output.h"
#include "fovea/base/fields.h"
#include "fovea/config/field.h"
#include "fovea/task/training_task.h"
#include "fovea/train/options.h"

namespace fovea::cli {

enum class ProgressKind { kAuto, kPlain, kNone };

inline constexpr EnumName<ProgressKind> kProgressKindNames[] = {
    {ProgressKind::kAuto, "auto"}, {ProgressKind::kPlain, "plain"}, {ProgressKind::kNone, "none"}};
inline std::span<const EnumName<ProgressKind>> enum_names(ProgressKind) {
  return kProgressKindNames;
}

struct RunOptions : RunChoices {
  std::string output = {};
  bool json = false;
  ProgressKind progress = ProgressKind::kAuto;
  MessageOptions messages = {};

  template <class Visitor>
  void visit_fields(Visitor&& visit) {
    visit("output", output, "folder of the run and its model",
          {.place = HelpPlace::kOutput, .shown = "DIR", .also = "o"});
    RunChoices::visit_fields(visit);
    visit("json", json, "print the result as one JSON object");
    visit("progress", progress, "how to show progress; auto: a bar on a terminal, else lines");
    messages.visit_fields(under("Messages", visit));
  }
};

/// The options of a training command. `fields` are all that a user can set, those of the nested
/// structs in their order: "text", "model", "recipe" and "run".
std::vector<OptionSpec> training_options(const std::vector<Field>& fields);

/// Sets fields from --config, then the environment, then the options. Paths become absolute, so
/// that a run can be resumed from any folder. Returns the names of the fields that were set.
std::vector<std::string> read_settings(const std::vector<Field>& fields,
                                       const Arguments& arguments);

/// The fields as TOML that --config can read. Throws kOptionValue for a text that is not UTF-8.
std::string settings_toml(const std::vector<Field>& fields);

/// If a run sets --lr but not --min-lr, min_lr follows lr; of a run that is resumed only where it
/// would be above lr. `set`: the names of the fields that were set.
void let_min_lr_follow(TrainOptions& recipe, const std::vector<std::string>& set, bool resumes);

/// The files that the fields name.
std::vector<std::string> paths_in(const std::vector<Field>& fields);

/// A score of the texts that a model learned says little of others. Each file of `trained` that is
/// among the `tested` is named once.
std::vector<std::string> warn_of_trained_files(const std::vector<std::string>& trained,
                                               const std::vector<std::string>& tested);

}  // namespace fovea::cli
