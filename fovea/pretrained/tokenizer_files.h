// SPDX-License-Identifier: Apache-2.0
// The tokenizers in folders of Hugging Face: byte-level BPE in a tokenizer.json of its library
// `tokenizers`, and WordPiece there or in a vocab.txt. Truncation and padding are not read: who
// asks for tokens decides about these.
#pragma once

#include <fmt/format.h>

#include <string>
#include <string_view>
#include <vector>

#include "fovea/base/error.h"
#include "fovea/config/json.h"
#include "fovea/pretrained/foreign_json.h"
#include "fovea/pretrained/model_files.h"
#include "fovea/text/tokenizer/byte_bpe.h"
#include "fovea/text/tokenizer/wordpiece.h"

namespace fovea {

/// The marks of a TemplateProcessing, one of the post-processors of a tokenizer.json with `tokens`
/// tokens: by its `single`, and by its `pair` if that has the same marks around both texts. Throws
/// kModelWrongKind, kModelDamaged.
MarksAround marks_of_template(const ForeignObject& processor, index tokens);

/// What `read` returns. A value of another type, which it finds in a file, is kModelDamaged.
template <class Read>
auto named_as_damaged(const std::string& where, const Read& read) {
  try {
    return read();
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kConfig) throw;
    throw error.with(ErrorCode::kModelDamaged, fmt::format("{}: {}", where, error.what()));
  }
}

struct BpeOfJson {
  ByteBpeModel model;
  MarksAround marks{};
};

/// The tokenizer in a tokenizer.json, whose text was parsed. `where` begins each message. Throws
/// kModelWrongKind for a part that fovea does not know, by its name, and kModelDamaged.
BpeOfJson bpe_of_json(const Json& json, const std::string& where);

/// tokenizer.json, whose text was parsed: WordPiece with the normalizer, the words and the marks of
/// BERT. Throws kModelWrongKind for anything else, which it names, and kModelDamaged.
WordPieceModel wordpiece_from_json(const Json& json, const std::string& where);

/// vocab.txt, a token a line, with the marks and rules that tokenizer_config.json says, or BERT's.
/// Throws as above.
WordPieceModel wordpiece_from_vocabulary(std::string_view text, const std::string& where,
                                         const ForeignObject* config);

/// The WordPiece among these files: their tokenizer.json or, without one, their vocab.txt. Throws
/// kModelMissing if neither is there.
WordPieceModel read_wordpiece(const ModelFiles& files);

}  // namespace fovea
