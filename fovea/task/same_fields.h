// SPDX-License-Identifier: Apache-2.0
// Whether a run of any kind can go on with other settings or data.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "fovea/config/field.h"
#include "fovea/train/options.h"

namespace fovea {

/// Throws kConfig, which names the option, for the first field that a resumed run must not change
/// (OnResume) and that was changed. `splits`: both runs split their data into training and
/// validation. Both lists have the same fields.
void require_same_settings(const std::vector<Field>& before, const std::vector<Field>& now,
                           bool splits);

/// The differences that affect updates (OnResume), a sentence each. The end of the run does, if the
/// schedule (of `recipe`, now) depends on it.
std::vector<std::string> changed_updates(const std::vector<Field>& before,
                                         const std::vector<Field>& now, const TrainOptions& recipe);

/// The fingerprint of the model in the text of a config.json, by the fields that stand there. A
/// build of before knew fewer, and its run has this fingerprint: whether the values are those of
/// the model that is trained now, require_same_settings says. `name` is for messages. Throws
/// kModelDamaged.
std::string stored_model_fingerprint(std::string_view config, const std::string& name);

/// The data of a run.
struct RunFiles {
  const std::vector<std::string>& train;
  const std::vector<std::string>& valid;
  const std::string& fingerprint;
};

/// The options that name them.
struct FileOptions {
  std::string_view train = "train";
  std::string_view valid = "valid";
};

/// Throws kConfig if the data differ from those with which the run began.
void require_same_files(const RunFiles& was, const RunFiles& is, const FileOptions& options = {});

}  // namespace fovea
