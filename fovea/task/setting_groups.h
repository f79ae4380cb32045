// SPDX-License-Identifier: Apache-2.0
// The three parts of all settings of a training, what holds for the fields of each, and help that
// several kinds of settings share.
#pragma once

#include <string_view>

#include "fovea/base/fields.h"

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

}  // namespace fovea
