// SPDX-License-Identifier: Apache-2.0
// Scores with a soft bound (Gemma Team 2024, "Gemma 2", section 2: logit soft-capping).
#pragma once

#include <string>

#include "fovea/attention/bias/bias.h"

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

}  // namespace fovea::bias
