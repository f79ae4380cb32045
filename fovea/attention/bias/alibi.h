// SPDX-License-Identifier: Apache-2.0
// Attention with linear biases (Press, Smith, Lewis 2022), with trainable slopes.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "fovea/attention/bias/bias.h"
#include "fovea/base/view.h"

namespace fovea {

/// The slopes of the paper for H heads, [H] (section 3 and its code): for a power of two
/// 2^(-8 (h + 1) / H); otherwise those of the power of two below, then every other one of the power
/// of two above. T is float or double. Throws Error(kShape) unless heads > 0.
template <class T = float>
std::vector<T> alibi_slopes(index heads);

}  // namespace fovea

namespace fovea::bias {

/// score - slopes[h] * |p - j|, p the position of the query.
template <class T>
class Alibi final : public ScoreFunction<T> {
 public:
  /// slopes [H], which are copied: the vector may change or end. A call with another H throws
  /// Error(kShape).
  explicit Alibi(const std::vector<T>& slopes)
      : owned_(std::make_shared<const std::vector<T>>(slopes)), slopes_(*owned_) {}
  /// Keeps views, which must outlive the calls. dslopes [H] receives the gradient of slopes in
  /// backward, or is empty.
  explicit Alibi(Vec<const T> slopes, Vec<T> dslopes = {}) : slopes_(slopes), dslopes_(dslopes) {}

  T value(const ScoreSite& site, T score) const override;
  index gradient_size() const override { return dslopes_.empty() ? 0 : 1; }
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
  std::string name() const override { return "alibi"; }

 private:
  std::shared_ptr<const std::vector<T>> owned_;  // null: slopes_ views memory of the caller
  Vec<const T> slopes_;
  Vec<T> dslopes_;
};

}  // namespace fovea::bias
