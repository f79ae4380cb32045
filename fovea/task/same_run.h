// SPDX-License-Identifier: Apache-2.0
// Whether a run of any kind can go on with other settings or data.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "fovea/config/field.h"
#include "fovea/train/options.h"
#include "fovea/train/run_state.h"

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

/// The data of a run, and the options that name them.
struct RunFiles {
  std::vector<std::string> train, valid;
  std::string fingerprint = {};
  std::string_view train_option = "train", valid_option = "valid";
};

/// Those of the options of a text. (Pairs of sentences have files of their own.)
template <class Text>
RunFiles files_of(const Text& text) {
  return {.train = text.train, .valid = text.valid};
}

/// Throws kConfig, which names the option, if the data differ from those with which the run began.
void require_same_files(const RunFiles& was, const RunFiles& is);

/// The same for the run that is given. The files may have other names, but the same content.
template <class Settings, class Run>
void require_same_text(const Settings& began, const RunIdentity& identity, const Run& given) {
  RunFiles was = files_of(began.text), is = files_of(given.settings.text);
  was.fingerprint = identity.data;
  is.fingerprint = given.identity.data;
  require_same_files(was, is);
}

/// A run must keep its model, its tokenizer, how its data are cut and where they are split. Throws
/// kConfig, which names the option, the value of the run and the given one; and what resolve()
/// throws. keep_found() of the task says what the run has found in its data. The names of files may
/// change: require_same_text() checks the data.
template <class Settings>
void require_same_run(const Settings& began, const Settings& given) {
  Settings was = began, is = given;
  was.model = resolve(was.model);
  keep_found(is, was);
  is.model = resolve(is.model);  // a size given as 0 equals the one that follows from the others
  const bool splits = files_of(was.text).valid.empty() && files_of(is.text).valid.empty();
  require_same_settings(fields_of(was), fields_of(is), splits);
}

/// The options that affect updates, may change, and differ from those of the checkpoint: "--lr: the
/// checkpoint has 0.001, from now on it is 0.002".
template <class Settings>
std::vector<std::string> changed_options(Settings checkpoint, Settings given) {
  return changed_updates(fields_of(checkpoint), fields_of(given), given.recipe);
}

}  // namespace fovea
