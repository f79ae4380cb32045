// SPDX-License-Identifier: Apache-2.0
// Relative positions on the values (Shaw, Uszkoreit, Vaswani 2018, eq. 3).
#pragma once

#include <string>

#include "fovea/attention/relative/shaw.h"
#include "fovea/attention/values/values.h"

namespace fovea::values {

/// o_i = sum of w_ij (v_j + table[clip(p - j, -r, r) + r]), or with j - p, depending on the order.
template <class T>
class Shaw final : public ValuePart<T> {
 public:
  /// table [2 r + 1, Dv], shared by the heads; dtable, of the same shape, receives its gradient in
  /// backward, or is empty. Views. Throws Error(kShape) for an even number of rows.
  explicit Shaw(Rows<const T> table, Rows<T> dtable = {},
                ShawOrder order = ShawOrder::kQueryMinusKey);

  void vector(const ScoreSite& site, Vec<T> to) const override;
  index gradient_size() const override { return table_.gradient_size(); }
  void add_parameters(const ScoreSite& site, Vec<const T> dvector, double* sums) const override;
  void store_gradient(const double* sums, index heads) const override;
  void apply(const TileSite& site, const ScoreTile<const T>& weights, Rows<T> o) const override;
  void pull_weights(const TileSite& site, Rows<const T> d_o, T factor,
                    const ScoreTile<T>& dweights) const override;
  void pull_parameters(const TileSite& site, const ScoreTile<const T>& weights, Rows<const T> d_o,
                       double* sums) const override;
  void name_parameters(OverlapCheck& memory) const override;
  void name_gradients(OverlapCheck& memory) const override;
  void check_shape(const AttentionSizes& sizes) const override;
  std::string name() const override;

 private:
  detail::ShawTable<T> table_;
};

}  // namespace fovea::values
