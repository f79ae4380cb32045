// SPDX-License-Identifier: Apache-2.0
// A bias matrix with one value per score.
#pragma once

#include <string>

#include "fovea/attention/bias/bias.h"

namespace fovea::bias {

/// score + values[b][h][i][j]. Packed sequences: batch 1, rows and columns packed; entries between
/// different sequences are ignored and have gradient 0.
template <class T>
class Dense final : public BiasPart<T> {
 public:
  /// values [B or 1, H or 1, T or 1, S]; axes of size 1 broadcast. dvalues, of the same shape, gets
  /// the gradient in backward, summed over axes of size 1; or it is empty. Views.
  explicit Dense(ScoreView<const T> values, ScoreView<T> dvalues = {})
      : values_(values), dvalues_(dvalues) {}

  T apply_one(const ScoreSite& site, const ScoreRows<T>& rows, T score) const override;
  T pull_one(const ScoreSite& site, const ScoreRows<T>& rows, T score, T dscore,
             const ScoreGradients<T>& gradients) const override;
  void apply(const TileSite& site, const TileRows<T>& rows,
             const ScoreTile<T>& tile) const override;
  void pull(const TileSite& site, const TileRows<T>& rows, const ScoreTile<T>& scores,
            const ScoreTile<T>& dscores, const TileGradients<T>& gradients) const override;
  void prefetch_apply(const TileSite& site, Prefetch& prefetch) const override;
  void prefetch_pull(const TileSite& site, Prefetch& prefetch) const override;
  bool needs_scores() const override { return false; }
  bool needs_rows() const override { return false; }
  SharedGradient shared_gradient() const override;
  void start_gradient(const Context& ctx) const override;
  void name_parameters(OverlapCheck& memory) const override;
  void name_gradients(OverlapCheck& memory) const override;
  void check_shape(const AttentionSizes& sizes) const override;
  std::string name() const override { return "dense"; }

 private:
  ScoreView<const T> values_;
  ScoreView<T> dvalues_;
};

}  // namespace fovea::bias
