// SPDX-License-Identifier: Apache-2.0
// The pieces of SentencePiece as the vocabulary of a model from elsewhere: marks are found in a
// text, and what stands between them is cut by the scores of the pieces. So do llama.cpp (GGUF
// files with the tokenizer `llama`) and folders with a tokenizer.model.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "fovea/text/sentencepiece/sentencepiece.h"
#include "fovea/text/tokenizer/added_tokens.h"
#include "fovea/text/tokenizer/subwords.h"

namespace fovea {

struct ScoredPiecesModel {
  PieceModel pieces;
  std::vector<token> wholes{};  ///< found in a text before the others: besides the marks
  bool prefix = true;           ///< a blank before a text, and before what stands behind a mark
  bool merges_blanks = false;   ///< of several blanks one counts, and none at the ends
  token begin = kNoToken, end = kNoToken;
};

class ScoredPieces final : public Subwords {
 public:
  /// `name` begins each message. Throws kModelDamaged for a vocabulary that contradicts itself
  /// (read_piece_model), kModelWrongKind for rules that leave out blanks or rewrite decoded text.
  ScoredPieces(ScoredPiecesModel model, std::string_view name);

  index size() const override { return pieces_.size(); }
  token id_of(std::string_view name) const override { return pieces_.id_of(name); }
  const std::string& name(token id) const override { return piece(id).text; }
  bool is_mark(token id) const override {
    return piece(id).type == PieceType::kControl || piece(id).type == PieceType::kUnknown;
  }
  bool is_unused(token id) const override { return piece(id).type == PieceType::kUnused; }
  SpecialTokens special() const override {
    return {.begin = begin_, .end = end_, .unknown = pieces_.model().unknown};
  }
  LineSpace line_space() const override {
    return prefix_ ? LineSpace::kOneDroppedAtFirst : LineSpace::kKept;
  }

  void encode(std::vector<token>& ids, std::string_view text, Marks marks = Marks::kRead,
              TextPlace place = TextPlace::kBegin) const override;
  std::string decode(std::span<const token> ids) const override;
  void append_bytes(std::string& out, token id) const override;

 private:
  const ModelPiece& piece(token id) const {
    return pieces_.model().pieces[static_cast<std::size_t>(id)];
  }

  const bool prefix_, writes_prefix_;
  const token begin_, end_;
  const SentencePiece pieces_;
  std::array<AddedTokens, 2> wholes_;  // by Marks
};

}  // namespace fovea
