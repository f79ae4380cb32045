// SPDX-License-Identifier: Apache-2.0
// A tokenizer of fovea as the tokenizer.json of Hugging Face's library `tokenizers`.
#pragma once

#include <array>
#include <string>
#include <string_view>

#include "fovea/config/json.h"
#include "fovea/text/tokenizer.h"

namespace fovea {

struct HuggingFaceTokenizer {
  Json tokenizer;         ///< of tokenizer.json
  Json::Object settings;  ///< of tokenizer_config.json
  Json::Object ids;  ///< of special tokens, as config.json and generation_config.json name them
};

/// A tokenizer that gives every valid text the same ids, unless the text holds the name of a
/// special token. `lines`: the model knows lines, so a text begins with the mark of one, and what
/// is generated ends with it. Throws kModelWrongKind for a tokenizer that tokenizer.json cannot
/// say.
HuggingFaceTokenizer hugging_face_tokenizer(const Tokenizer& tokenizer, bool lines);

// How vocabularies of other programs name our tokens of bytes and the marks before them.

/// The names of kPadToken, kBeginToken and kEndToken in tokenizers of bytes and characters, which
/// have no text for them: these names occur in no usual text.
inline constexpr std::array<std::string_view, 3> kMarkNames = {"<|pad|>", "<|begin|>", "<|end|>"};

/// The letter of name_of_bytes() for a byte.
std::string character_of_byte(int byte);

/// "<0x0A>", as SentencePiece names its bytes.
std::string name_of_byte(int byte);

}  // namespace fovea
