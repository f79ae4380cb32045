// SPDX-License-Identifier: Apache-2.0
// Learns the pieces of a text, by the trainer of SentencePiece's library.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "fovea/base/fields.h"
#include "fovea/text/sentencepiece/piece_model.h"

namespace fovea {

inline constexpr EnumName<PieceAlgorithm> kPieceAlgorithmNames[] = {
    {PieceAlgorithm::kUnigram, "unigram"}, {PieceAlgorithm::kBpe, "bpe"}};
inline std::span<const EnumName<PieceAlgorithm>> enum_names(PieceAlgorithm) {
  return kPieceAlgorithmNames;
}

/// How text is rewritten before it is cut; SentencePiece's rules.
enum class PieceRules {
  kNmtNfkc,    ///< NFKC, and what translations do not need
  kNfkc,       ///< Unicode's NFKC
  kNmtNfkcCf,  ///< the first, in lower case
  kNfkcCf,     ///< the second, in lower case
  kIdentity,   ///< as it is
};
inline constexpr EnumName<PieceRules> kPieceRulesNames[] = {{PieceRules::kNmtNfkc, "nmt_nfkc"},
                                                            {PieceRules::kNfkc, "nfkc"},
                                                            {PieceRules::kNmtNfkcCf, "nmt_nfkc_cf"},
                                                            {PieceRules::kNfkcCf, "nfkc_cf"},
                                                            {PieceRules::kIdentity, "identity"}};
inline std::span<const EnumName<PieceRules>> enum_names(PieceRules) { return kPieceRulesNames; }

struct PieceTraining {
  PieceAlgorithm kind = PieceAlgorithm::kUnigram;
  index vocab_size = 8000;
  double coverage = 0.9995;
  PieceRules normalization = PieceRules::kNmtNfkc;
  bool byte_fallback = false;
  bool split_digits = false;
  index piece_length = 16;
  index line_length = 16384;
  std::vector<std::string> user_symbols = {};
  std::vector<std::string> control_symbols = {};

  template <class Visitor>
  void visit_fields(Visitor&& visit) {
    visit("kind", kind, "unigram: the likeliest pieces; bpe: merges of frequent neighbours",
          {.place = HelpPlace::kTraining});
    visit("vocab_size", vocab_size, "pieces, with <unk>, <s>, </s>, bytes and symbols",
          {.place = HelpPlace::kTraining});
    visit("coverage", coverage,
          "share of the text's characters that get a piece; the rarest are unknown");
    visit("normalization", normalization,
          "how text is normalized first (Unicode NFKC; cf: in lower case, too)");
    visit("byte_fallback", byte_fallback, "spell characters without a piece in bytes");
    visit("split_digits", split_digits, "each digit is a piece of its own");
    visit("piece_length", piece_length, "longest piece, in characters");
    visit("line_length", line_length, "lines of more bytes are left out");
    visit("user_symbols", user_symbols, "texts that are always one piece");
    visit("control_symbols", control_symbols, "pieces that no text has, such as <mask>");
  }
};

struct TrainedPieces {
  std::string model;     ///< the bytes of a .model file
  index lines = 0;       ///< that were learned from
  index long_lines = 0;  ///< that were left out
};

/// Learns from the lines of a text, valid UTF-8. The same text and settings give the same bytes,
/// on any number of processors. Throws kOptionValue for settings that are out of range or do not
/// fit the text, such as more pieces than it has (the hint says how many); kInputTooSmall without a
/// line that can be learned from.
TrainedPieces train_pieces(std::string_view text, const PieceTraining& training);

}  // namespace fovea
