// SPDX-License-Identifier: Apache-2.0
// Subwords of characters in a tokenizer.json: byte-pair encoding whose unknown characters are
// spelled in bytes (Llama 2, Mistral, Gemma), and unigram models (XLM-RoBERTa, T5).
#pragma once

#include <string>
#include <vector>

#include "fovea/config/json.h"
#include "fovea/pretrained/foreign_json.h"
#include "fovea/text/tokenizer/piece_pipeline.h"
#include "fovea/text/tokenizer/wordpiece.h"

namespace fovea {

struct PiecesOfJson {
  PiecePipelineModel model;
  MarksAround marks{};
};

/// Whether the tokenizer of a tokenizer.json, whose text was parsed, is one of these: a unigram
/// model, or BPE of what is not written in letters for bytes.
bool has_pieces(const Json& json, const std::string& where);

/// The tokenizer. `where` begins each message. Throws kModelWrongKind for a part that fovea does
/// not know, by its name, and kModelDamaged.
PiecesOfJson pieces_of_json(const Json& json, const std::string& where);

}  // namespace fovea
