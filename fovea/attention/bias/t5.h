// SPDX-License-Identifier: Apache-2.0
// Relative positions in buckets (Raffel et al. 2020, "T5", section 2.1): small distances have one
// bucket each, larger ones share buckets of logarithmic width.
#pragma once

#include <string>
#include <vector>

#include "fovea/attention/bias/bias.h"
#include "fovea/attention/relative/by_distance.h"
#include "fovea/base/view.h"

namespace fovea::bias {

enum class T5Direction {
  kBidirectional,  ///< half of the buckets for keys before the query, half for those after
  kCausal,         ///< all buckets for keys before; a later key has distance 0
};

struct T5Options {
  T5Direction direction = T5Direction::kBidirectional;
  index max_distance = 128;  ///< distances from here on share the last bucket
};

/// The bucket of the distance j - p. With N buckets per direction, n = |j - p| and E = floor(N /
/// 2), the bucket is n if n < E, and otherwise, in the float arithmetic of the published code,
///
///   min(N - 1, E + floor(ln(n / E) / ln(max_distance / E) * (N - E)))
///
/// where n / E, both logarithms, their ratio and the product are each rounded to float, which
/// decides between two buckets at their border. Bidirectional: N is floor(buckets / 2), and keys
/// after the query add N. Throws Error(kShape) for fewer than 4 buckets (causal: 2), and
/// Error(kOptionValue) unless max_distance > E.
index t5_bucket(index distance, index buckets, const T5Options& options);

/// score + table[bucket of j - p][head].
template <class T>
class T5 final : public ScoreFunction<T> {
 public:
  /// table [buckets, H]; dtable, of the same shape, receives its gradient in backward, or is empty.
  /// Views. Throws what t5_bucket() throws.
  explicit T5(Rows<const T> table, Rows<T> dtable = {}, const T5Options& options = {});

  T value(const ScoreSite& site, T score) const override;
  index gradient_size() const override { return dtable_.data == nullptr ? 0 : table_.rows; }
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
  std::string name() const override;

 private:
  index bucket(const ScoreSite& site) const {
    return t5_bucket(site.j - site.position(), table_.rows, options_);
  }
  template <class F>
  void for_each_run(const detail::TileDistances& distances, F&& f) const;
  index end_of_run(index distance) const;

  Rows<const T> table_;
  Rows<T> dtable_;
  T5Options options_;
  std::vector<index> first_;  // the shortest distance of each bucket of one direction
};

}  // namespace fovea::bias
