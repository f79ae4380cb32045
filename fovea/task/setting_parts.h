// SPDX-License-Identifier: Apache-2.0
// What the settings of all kinds of models share.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "fovea/base/fields.h"
#include "fovea/config/field.h"
#include "fovea/text/tokenizer.h"

namespace fovea {

inline constexpr std::string_view kSubwordSamplingHelp =
    "--tokenizer sentencepiece: cut the training text anew in each epoch; of unigram models the "
    "exponent of a cut's probability (Kudo 2018), of BPE the share of merges left out "
    "(BPE-dropout); 0: always the best cut";
inline constexpr std::string_view kEmbeddingsHelp =
    "file of pretrained word vectors to start from: word2vec's text format, fastText's .vec, "
    "GloVe, or .npz";

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

/// The same for the settings of a training, and for a number of their text or recipe that is out of
/// its range. (Those of the model resolve() checks.)
template <class Settings>
void check_fields(Settings settings, Settings usual) {
  check_ranges(settings.text);
  check_ranges(settings.recipe);
  require_sound(fields_of(settings), fields_of(usual));
}

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

}  // namespace fovea
