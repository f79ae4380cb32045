// SPDX-License-Identifier: Apache-2.0
// The use of --tokenizer sentencepiece in all trainings.
#pragma once

#include <string>
#include <string_view>

#include "fovea/text/tokenizer.h"

namespace fovea {

/// Throws kOptionValue unless a .model file is named where tokens are its pieces. `option`:
/// "--tokenizer-model".
void require_subword_model(bool subwords, const std::string& file, std::string_view option);

/// The options with the bytes of a .model file, if one is named. Throws what reading it does.
LearnOptions with_subword_model(LearnOptions options, const std::string& file);

}  // namespace fovea
