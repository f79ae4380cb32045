// SPDX-License-Identifier: Apache-2.0
// Kernelized relative positions in their logarithmic form (Chi, Fan, Ramadge, Rudnicky 2022,
// "KERPLE: Kernelized Relative Positional Embedding for Length Extrapolation").
#pragma once

#include <string>

#include "fovea/attention/bias/bias.h"
#include "fovea/base/view.h"

namespace fovea::bias {

/// The paper keeps r1 and r2 positive; as in its code, a smaller number counts as this one.
inline constexpr double kKerpleLeast = 0.01;

/// score - r1[h] log(1 + r2[h] |p - j|), p the position of the query.
template <class T>
class Kerple final : public ScoreFunction<T> {
 public:
  /// r [2, H]: row 0 is r1, row 1 is r2; dr, of the same shape, receives its gradient in backward,
  /// or is empty. Views. A number below kKerpleLeast counts as kKerpleLeast, and its gradient is
  /// the one there, not 0: so training can bring it back. A call with another H throws
  /// Error(kShape).
  explicit Kerple(Rows<const T> r, Rows<T> dr = {}) : r_(r), dr_(dr) {}

  T value(const ScoreSite& site, T score) const override;
  index gradient_size() const override { return dr_.data == nullptr ? 0 : 2; }
  void add_parameters(const ScoreSite& site, T score, T dscore, double* sums) const override;
  void store_gradient(const double* sums, index heads) const override;
  void apply(const TileSite& site, const TileRows<T>& rows,
             const ScoreTile<T>& tile) const override;
  void pull(const TileSite& site, const TileRows<T>& rows, const ScoreTile<T>& scores,
            const ScoreTile<T>& dscores, const TileGradients<T>& gradients) const override;
  bool needs_scores() const override { return false; }
  void name_parameters(OverlapCheck& memory) const override;
  void name_gradients(OverlapCheck& memory) const override;
  void check_shape(const AttentionSizes& sizes) const override;
  std::string name() const override { return "kerple"; }

 private:
  Rows<const T> r_;
  Rows<T> dr_;
};

}  // namespace fovea::bias
