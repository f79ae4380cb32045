// SPDX-License-Identifier: Apache-2.0
// The translations of a line as JSON.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "fovea/task/translate/line_translator.h"

namespace fovea {

/// An object in one line: "source", and of the best "translation", "score", "log_probability" and
/// "tokens", with alignments "alignment"; of several all of them in "nbest".
std::string translation_json(std::string_view source, std::span<const TranslatedText> all,
                             const TranslationOptions& options);

}  // namespace fovea
