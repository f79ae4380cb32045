// SPDX-License-Identifier: Apache-2.0
// Subwords: the models of SentencePiece, read and used without its library. Encoding and decoding
// give what SentencePiece 0.2 gives.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "fovea/base/random.h"
#include "fovea/text/keyed_hash.h"
#include "fovea/text/sentencepiece/cutter.h"
#include "fovea/text/sentencepiece/piece_model.h"

namespace fovea {

/// A piece of a text. Characters in a row that no piece has are one unknown piece, with their text.
struct EncodedPiece {
  std::string text;
  token id = kNoToken;

  bool operator==(const EncodedPiece&) const = default;
};

/// Appends a piece, with spaces as people write them.
void append_spaced(std::string& out, std::string_view piece);

/// Immutable; any number of threads may use one at once.
class SentencePiece {
 public:
  /// `file` are the bytes of a .model file. Throws as read_piece_model does, and kModelDamaged for
  /// rules of normalization that contradict themselves.
  explicit SentencePiece(std::string_view file, std::string_view name = "model");
  /// Pieces that check_piece_model() has checked.
  SentencePiece(PieceModel model, std::string_view name);
  SentencePiece(const SentencePiece&) = delete;
  SentencePiece& operator=(const SentencePiece&) = delete;

  const PieceModel& model() const { return model_; }
  index size() const { return static_cast<index>(model_.pieces.size()); }
  /// kNoToken if there is no such piece.
  token id_of(std::string_view piece) const;

  /// The pieces of a line. Bytes that are not UTF-8 become U+FFFD. Throws kInputFormat where rules
  /// make a line much longer, and kOutOfMemory, as the others do.
  std::vector<EncodedPiece> encode(std::string_view text) const;
  /// One of the ways to cut the line, drawn anew in each call.
  std::vector<EncodedPiece> sample(std::string_view text, const CutSampling& sampling,
                                   Random& random) const;
  /// The n cuts with the highest scores, best first; kOptionValue for BPE.
  std::vector<std::vector<EncodedPiece>> best(std::string_view text, index n) const;

  /// The text of pieces, unknown ones with their own text.
  std::string decode(std::span<const EncodedPiece> pieces) const;
  /// The text of ids. Throws kShape for an id outside of the vocabulary.
  std::string decode(std::span<const token> ids) const;

 private:
  // A line as the model's rules write it, when there is memory to cut it.
  std::string normalized(std::string_view text) const;
  std::vector<EncodedPiece> named(const std::vector<CutPiece>& cut) const;

  const PieceModel model_;
  const PieceNormalizer normalizer_;
  std::unique_ptr<PieceCutter> cutter_;
  std::vector<token> bytes_;  // [256], with byte fallback
  /// Marks, unknown and byte pieces come before pieces of text with the same name.
  KeyedMap<std::string_view, token> ids_;
};

}  // namespace fovea
