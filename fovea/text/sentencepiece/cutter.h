// SPDX-License-Identifier: Apache-2.0
// Cuts normalized text into pieces: the best cut of a unigram model, the merges of BPE.
#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "fovea/base/random.h"
#include "fovea/text/sentencepiece/normalizer.h"
#include "fovea/text/sentencepiece/piece_model.h"

namespace fovea {

/// A part of the text that was cut, and its id: that of the unknown piece if no piece has it.
struct CutPiece {
  std::string_view text;
  token id = kNoToken;

  bool operator==(const CutPiece&) const = default;
};

/// A cut, and the sum of the scores of its pieces.
struct ScoredCut {
  std::vector<CutPiece> pieces;
  double score = 0;
};

/// How a cut is drawn, so that training sees a text cut in many ways.
struct CutSampling {
  /// unigram: how much scores count, 0: all cuts alike (Kudo 2018, "Subword regularization:
  /// improving neural network translation models with multiple subword candidates", alpha). BPE:
  /// the probability that a merge is left out (Provilkov, Emelianenko, Voita 2020, "BPE-dropout:
  /// simple and effective subword regularization", p).
  double alpha = 0.1;
  index best = 0;  ///< unigram: draw among so many best cuts; 0: among all
};

/// Immutable; any number of threads may use one at once.
class PieceCutter {
 public:
  virtual ~PieceCutter() = default;
  /// SentencePiece's cut of the text.
  virtual std::vector<CutPiece> cut(std::string_view normalized) const = 0;
  virtual std::vector<CutPiece> sample(std::string_view normalized, const CutSampling& sampling,
                                       Random& random) const = 0;
  /// The n cuts with the highest scores, best first. Throws kOptionValue for BPE, which has none.
  virtual std::vector<ScoredCut> best(std::string_view normalized, index n) const = 0;
};

/// The model and its normalizer must outlive the cutter.
std::unique_ptr<PieceCutter> make_unigram_cutter(const PieceModel& model);
std::unique_ptr<PieceCutter> make_bpe_cutter(const PieceModel& model,
                                             const PieceNormalizer& normalizer);

}  // namespace fovea
