// SPDX-License-Identifier: Apache-2.0
// The settings of all kinds of models: what their fields share, which options go together, and
// whether a run can go on with other settings or data.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "fovea/base/fields.h"
#include "fovea/config/field.h"
#include "fovea/model/encoder_config.h"
#include "fovea/text/tokenizer.h"
#include "fovea/train/options.h"
#include "fovea/train/run_state.h"

namespace fovea {

inline constexpr std::string_view kSubwordSamplingHelp =
    "--tokenizer sentencepiece: cut the training text anew in each epoch; of unigram models the "
    "exponent of a cut's probability (Kudo 2018), of BPE the share of merges left out "
    "(BPE-dropout); 0: always the best cut";
inline constexpr std::string_view kEmbeddingsHelp =
    "file of pretrained word vectors to start from: word2vec's text format, fastText's .vec, "
    "GloVe, or .npz";

/// The traits of an option that names files of data.
inline constexpr FieldTraits kDataFiles = {
    .resume = OnResume::kQuiet, .is_path = true, .place = HelpPlace::kData};
/// The traits of --valid-fraction.
inline constexpr FieldTraits kDataSplit = {.range = ValueRange::share("no validation"),
                                           .resume = OnResume::kUnlessSplit,
                                           .place = HelpPlace::kData};
/// The traits of --batch-size and the like, at least 1.
inline constexpr FieldTraits kBatchSize = {.range = ValueRange::in(1, kLargestSize),
                                           .resume = OnResume::kNoted,
                                           .place = HelpPlace::kTraining};

/// The list of fields of settings that are a text, a model and a recipe.
template <class Visitor, class Settings>
void visit_groups(Visitor&& visit, Settings& settings) {
  visit("text", settings.text, "what is read, and how it is cut", {.resume = OnResume::kNo});
  visit("model", settings.model, "what the model is made of", {.resume = OnResume::kNo});
  visit("recipe", settings.recipe, "how it is trained",
        {.resume = OnResume::kNoted, .also = "training"});
}

/// Throws kOptionValue, which names the option, for a text among these settings that is not UTF-8,
/// for config.json could not store it; and for a value other than that of `usual` that has no
/// effect without another setting. Both lists have the same fields.
void require_sound(std::span<const Field> settings, std::span<const Field> usual);

/// Calls require_sound() for the settings of a training, and throws for a number of their text or
/// recipe that is out of its range. (resolve() checks the numbers of the model.)
template <class Settings>
void check_fields(Settings settings, Settings usual) {
  check_ranges(settings.text);
  check_ranges(settings.recipe);
  require_sound(fields_of(settings), fields_of(usual));
}

/// A length of the recipe that follows from the data.
inline constexpr std::string_view kAutoLength = "auto";
/// How long a run is at least.
struct UsualLength {
  index epochs = 0;
  index fewest = 1000;  ///< updates
};
/// Fills in lengths that are "auto": the run ends after so many epochs, or so many updates if these
/// are more; it is validated and saved every epoch, but after 50 updates at least.
void resolve_lengths(TrainOptions& recipe, index updates_per_epoch, const UsualLength& length);
/// Throws as check_options() does, of a recipe whose lengths may be "auto".
void check_recipe(TrainOptions recipe);

/// Throws kOptionValue unless options go together: "OPTIONS: WHY", and the hint.
void require_together(bool ok, std::string_view options, std::string_view why,
                      std::string_view hint);

/// Throws kOptionValue for a setting that has no effect without what it `needs`, unless that is "".
void require_effect(const Field& setting, std::string_view needs);

/// --tokenizer sentencepiece: throws kOptionValue unless a .model file is named where tokens are
/// its pieces. `option`:
/// "--tokenizer-model".
void require_subword_model(bool subwords, const std::string& file, std::string_view option);

/// The options with the bytes of a .model file, if one is named. Throws what reading it does.
LearnOptions with_subword_model(LearnOptions options, const std::string& file);

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

/// The files that the options of a text name. (Pairs of sentences have files of their own.)
template <class Text>
RunFiles files_of(const Text& text) {
  return {.train = text.train, .valid = text.valid};
}

/// Throws kConfig, which names the option, if the data differ from those with which the run began.
void require_same_files(const RunFiles& was, const RunFiles& is);

/// Calls require_same_files() for the run that is given. The files may have other names, but must
/// have the same content.
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
