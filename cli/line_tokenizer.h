// SPDX-License-Identifier: Apache-2.0
// The tokenizers that `fovea tokenizer encode` and `decode` take, as these see them: a .model file
// of SentencePiece, the vocabulary of a GGUF file, or that of a folder of Hugging Face.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "fovea/text/sentencepiece/sentencepiece.h"

namespace fovea::cli {

/// Any number of threads may use one at once.
class LineTokenizer {
 public:
  virtual ~LineTokenizer() = default;
  virtual index size() const = 0;
  /// The line must be UTF-8.
  virtual std::vector<EncodedPiece> encode(std::string_view line) const = 0;
  /// The id of a piece, or that of an unknown one. Throws kInputFormat if there is none.
  virtual token id_of(std::string_view piece) const = 0;
  virtual std::string decode(std::span<const EncodedPiece> pieces) const = 0;
  virtual std::string decode(std::span<const token> ids) const = 0;
  /// What it is, if it is one of SentencePiece.
  virtual const SentencePiece* sentence_piece() const { return nullptr; }
};

/// Throws as the readers of the files do.
std::unique_ptr<LineTokenizer> load_line_tokenizer(const std::string& file);

}  // namespace fovea::cli
