// SPDX-License-Identifier: Apache-2.0
// The three parts of all settings of a training, and what holds for the fields of each.
#pragma once

#include "fovea/base/fields.h"

namespace fovea {

/// The list of fields of settings that are a text, a model and a recipe.
template <class Visitor, class Settings>
void visit_groups(Visitor&& visit, Settings& settings) {
  visit("text", settings.text, "what is read, and how it is cut", {.resume = OnResume::kNo});
  visit("model", settings.model, "what the model is made of", {.resume = OnResume::kNo});
  visit("recipe", settings.recipe, "how it is trained",
        {.resume = OnResume::kNoted, .also = "training"});
}

}  // namespace fovea
