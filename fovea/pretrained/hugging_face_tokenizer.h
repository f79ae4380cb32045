// SPDX-License-Identifier: Apache-2.0
// A tokenizer of fovea as the tokenizer.json of Hugging Face's library `tokenizers`.
#pragma once

#include "fovea/config/json.h"
#include "fovea/text/tokenizer.h"

namespace fovea {

struct HuggingFaceTokenizer {
  Json tokenizer;         ///< of tokenizer.json
  Json::Object settings;  ///< of tokenizer_config.json
};

/// The same ids for every valid text without the names of special tokens. `begins`: a text begins
/// with the mark of a line. Throws kModelWrongKind for subwords, which are a .model file.
HuggingFaceTokenizer hugging_face_tokenizer(const Tokenizer& tokenizer, bool begins);

}  // namespace fovea
