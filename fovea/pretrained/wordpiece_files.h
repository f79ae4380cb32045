// SPDX-License-Identifier: Apache-2.0
// The tokenizer of a folder of Hugging Face whose model is WordPiece: tokenizer.json, or vocab.txt.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "fovea/config/json.h"
#include "fovea/pretrained/foreign_json.h"
#include "fovea/text/tokenizer/wordpiece.h"

namespace fovea {

/// tokenizer.json, whose text was parsed: WordPiece with the normalizer, the words and the marks of
/// BERT. Its truncation and padding are not read: who asks for tokens decides about these. Throws
/// kModelWrongKind for anything else, which it names, and kModelDamaged.
WordPieceModel wordpiece_from_json(const Json& json, const std::string& where);

/// vocab.txt, a token a line, with the marks and rules that tokenizer_config.json says, or BERT's.
/// Throws as above.
WordPieceModel wordpiece_from_vocabulary(std::string_view text, const std::string& where,
                                         const ForeignObject* config);

/// That of a folder: tokenizer.json if it is there. Throws kModelMissing if neither is.
WordPieceModel read_wordpiece(const std::filesystem::path& folder);

}  // namespace fovea
