// SPDX-License-Identifier: Apache-2.0
// The use of --tokenizer sentencepiece in all trainings.
#pragma once

#include <string>
#include <string_view>

#include "fovea/text/tokenizer.h"

namespace fovea {

/// Throws kOptionValue unless a .model file is named where tokens are its pieces, and only there.
/// `option`: "--tokenizer-model".
void check_subword_model(bool subwords, const std::string& file, std::string_view option);

/// Throws kOptionValue unless it is in [0, 1], and 0 where tokens are no subwords.
void check_subword_sampling(bool subwords, double alpha);

/// The options with the bytes of a .model file, if one is named. Throws what reading it does.
LearnOptions with_subword_model(LearnOptions options, const std::string& file);

}  // namespace fovea
