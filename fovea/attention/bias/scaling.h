// SPDX-License-Identifier: Apache-2.0
// Scores that are rescaled: bounded by a tanh, or by the number of keys.
#pragma once

#include <string>

#include "fovea/attention/bias/bias.h"
#include "fovea/attention/mask/mask.h"

namespace fovea::bias {

/// cap * tanh(score / cap): about the score itself if it is small; always within [-cap, cap].
template <class T>
class Softcap final : public ScoreFunction<T> {
 public:
  /// Throws Error(kOptionValue) unless 0 < cap, finite as a T.
  explicit Softcap(double cap);

  T value(const ScoreSite& site, T score) const override;
  T derivative(const ScoreSite& site, T score) const override;
  void apply(const TileSite& site, const TileRows<T>& rows,
             const ScoreTile<T>& tile) const override;
  void pull(const TileSite& site, const TileRows<T>& rows, const ScoreTile<T>& scores,
            const ScoreTile<T>& dscores, const TileGradients<T>& gradients) const override;
  std::string name() const override;

 private:
  T cap_;
};

// The log n scale of the scores (Su 2021; Chiang and Cholak 2022, "Overcoming a Theoretical
// Limitation of Self-Attention"): a row attends over many keys as sharply as over few.

/// score * log(n) / log(N), n the number of keys that the query keeps and N a reference length. It
/// multiplies the score, so it stands before biases that are added. A query that keeps one key has
/// scores of 0.
template <class T>
class LogNScale final : public ScoreFunction<T> {
 public:
  /// `mask` is the mask of the call: it says what n is, for each query and head. Counting takes
  /// constant time under masks that keep a range of keys (bands and lengths); under others each
  /// tile looks at every key of its queries. Throws Error(kOptionValue) unless 1 <
  /// reference_length, finite.
  LogNScale(double reference_length, Mask mask);

  T value(const ScoreSite& site, T score) const override;
  T derivative(const ScoreSite& site, T score) const override;
  void apply(const TileSite& site, const TileRows<T>& rows,
             const ScoreTile<T>& tile) const override;
  void pull(const TileSite& site, const TileRows<T>& rows, const ScoreTile<T>& scores,
            const ScoreTile<T>& dscores, const TileGradients<T>& gradients) const override;
  bool needs_scores() const override { return false; }
  bool takes_packed() const override;
  void name_parameters(OverlapCheck& memory) const override;
  void check_shape(const AttentionSizes& sizes) const override;
  void start_call() const override;
  std::string name() const override;

 private:
  T factor(const Sequence& sequence, index head, index i) const;
  void scale(const TileSite& site, const ScoreTile<T>& tile) const;

  double reference_length_;
  Mask mask_;
};

}  // namespace fovea::bias
