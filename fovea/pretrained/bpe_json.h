// SPDX-License-Identifier: Apache-2.0
// Byte-level BPE in the tokenizer.json of Hugging Face's library `tokenizers`.
#pragma once

#include <string>

#include "fovea/config/json.h"
#include "fovea/text/tokenizer/byte_bpe.h"

namespace fovea {

struct BpeOfJson {
  ByteBpeModel model;
  token begin = kNoToken;  ///< stands before each text; kNoToken: nothing does
};

/// The tokenizer in a tokenizer.json, whose text was parsed. `where` begins each message. Its
/// truncation and padding are not read: who asks for tokens decides about these. Throws
/// kModelWrongKind for a part that fovea does not know, by its name, and kModelDamaged.
BpeOfJson bpe_of_json(const Json& json, const std::string& where);

}  // namespace fovea
