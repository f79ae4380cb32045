// SPDX-License-Identifier: Apache-2.0
// A tokenizer of fovea as the tokenizer.json of Hugging Face's library `tokenizers`.
#pragma once

#include "fovea/config/json.h"
#include "fovea/text/tokenizer.h"

namespace fovea {

struct HuggingFaceTokenizer {
  Json tokenizer;         ///< of tokenizer.json
  Json::Object settings;  ///< of tokenizer_config.json
  Json::Object ids;  ///< of special tokens, as config.json and generation_config.json name them
};

/// The same ids for every valid text without the names of special tokens. `lines`: the model knows
/// lines, so a text begins with the mark of one, and what is generated ends with it. Throws
/// kModelWrongKind for a tokenizer that tokenizer.json cannot say.
HuggingFaceTokenizer hugging_face_tokenizer(const Tokenizer& tokenizer, bool lines);

}  // namespace fovea
