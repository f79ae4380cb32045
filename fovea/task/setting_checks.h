// SPDX-License-Identifier: Apache-2.0
// Checks that the settings of all kinds of models share.
#pragma once

#include <span>
#include <string_view>

#include "fovea/config/field.h"

namespace fovea {

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

}  // namespace fovea
