// SPDX-License-Identifier: Apache-2.0
// Checks that the settings of all kinds of models share.
#pragma once

#include <string>
#include <string_view>

#include "fovea/config/field.h"

namespace fovea {

/// config.json stores the text, and JSON must be UTF-8. Throws kOptionValue, which names the
/// option.
void require_storable(const std::string& text, std::string_view option);

/// Throws kOptionValue unless options go together: "OPTIONS: WHY", and the hint.
void require_together(bool ok, std::string_view options, std::string_view why,
                      std::string_view hint);

/// Throws kOptionValue for a setting that has no effect without what it `needs`, unless that is "".
void require_effect(const Field& setting, std::string_view needs);

}  // namespace fovea
