// SPDX-License-Identifier: Apache-2.0
// Relative positions on the keys (Shaw, Uszkoreit, Vaswani 2018, eq. 4).
#pragma once

#include <string>

#include "fovea/attention/bias/bias.h"
#include "fovea/attention/relative/shaw.h"

namespace fovea::bias {

/// score + scale q . table[clip(p - j, -r, r) + r], or with j - p, depending on the order. This is
/// the score of the key k + table[...]. Put this part before parts that change a score.
template <class T>
class Shaw final : public BiasPart<T> {
 public:
  /// table [2 r + 1, D], shared by the heads; dtable, of the same shape, receives its gradient in
  /// backward, or is empty. Views. D is the width of the transformed rows: D + 1 with the score
  /// concat. Throws Error(kShape) for an even number of rows.
  explicit Shaw(Rows<const T> table, Rows<T> dtable = {},
                ShawOrder order = ShawOrder::kQueryMinusKey);

  T apply_one(const ScoreSite& site, const ScoreRows<T>& rows, T score) const override;
  T pull_one(const ScoreSite& site, const ScoreRows<T>& rows, T score, T dscore,
             const ScoreGradients<T>& gradients) const override;
  index gradient_size() const override { return table_.gradient_size(); }
  void store_gradient(const double* sums, index heads) const override;
  void apply(const TileSite& site, const TileRows<T>& rows,
             const ScoreTile<T>& tile) const override;
  void pull(const TileSite& site, const TileRows<T>& rows, const ScoreTile<T>& scores,
            const ScoreTile<T>& dscores, const TileGradients<T>& gradients) const override;
  bool needs_scores() const override { return false; }
  void name_parameters(OverlapCheck& memory) const override;
  void name_gradients(OverlapCheck& memory) const override;
  void check_shape(const AttentionSizes& sizes) const override;
  std::string name() const override;

 private:
  detail::ShawTable<T> table_;
};

}  // namespace fovea::bias
