// SPDX-License-Identifier: Apache-2.0
// All options of train tag: the settings of the model and its recipe, and how this process is run.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cli/run_options.h"
#include "fovea/config/flags.h"
#include "fovea/task/tag/settings.h"

namespace fovea::cli {

struct TrainTagOptions {
  TaggerSettings settings;
  RunOptions run;

  template <class Visitor>
  void visit_fields(Visitor&& visit) {
    settings.visit_fields(visit);
    visit("run", run, "how this process is run");
  }
};

std::vector<OptionSpec> train_tag_options();

/// How this process is run, from --config, the environment and the options.
RunOptions tag_run_options(const Arguments& arguments);

/// The defaults of the task that these name.
TaggerSettings tag_defaults(const Arguments& arguments);

/// The options whose defaults --task segment changes, with these: "--shape-width 8".
std::vector<std::string> defaults_of_segment();

/// `begin` (the defaults, or the settings of a resumed run), changed by --config, the environment
/// and the options; later ones override earlier ones. Paths become absolute, so that a run can be
/// resumed from any folder.
TaggerSettings tag_settings(TaggerSettings begin, const Arguments& arguments);

/// The settings as TOML that --config can read.
std::string config_toml(const TaggerSettings& settings, const RunOptions& run);

/// The options that say how a file of tagged sentences is read, and those for sentences of which no
/// tags are read.
std::vector<Flag> tagged_flags(TaggedOptions& table);
std::vector<Flag> untagged_flags(TaggedOptions& table);
/// Throws kUsage for a column that was said (a field's name) of a format that none of the files
/// has.
void require_column_effect(std::string_view command, std::span<const std::string> said,
                           std::span<const std::string> files, const TaggedOptions& table);

}  // namespace fovea::cli
