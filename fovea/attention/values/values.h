// SPDX-License-Identifier: Apache-2.0
// Vectors added to the values, by place: o_i = sum of w_ij (v_j + c_ij). Relative positions on the
// values are one such part (Shaw, Uszkoreit, Vaswani 2018, eq. 3). They combine with +.
#pragma once

#include <string>

#include "fovea/attention/parts.h"

namespace fovea {

/// Vectors c_ij as a function of the place alone. vector() is the definition; with learned
/// parameters also gradient_size(), add_parameters() and store_gradient(). The three functions for
/// tiles follow from it; override them for speed. A weight of 0 adds nothing.
template <class T>
class ValuePart {
 public:
  using Family = ValuePart;
  static constexpr const char* kFamily = "a value part";
  virtual ~ValuePart() = default;

  /// Fills c_ij, [Dv].
  virtual void vector(const ScoreSite& site, Vec<T> to) const = 0;

  /// Number of sums per head for the gradient of the part's parameters.
  virtual index gradient_size() const { return 0; }
  /// Adds the gradient of the parameters to `sums` [gradient_size()], given that of c_ij.
  virtual void add_parameters(const ScoreSite& site, Vec<const T> dvector, double* sums) const;
  /// Stores the finished sums [H, gradient_size()]; same bits for any number of threads.
  virtual void store_gradient(const double* sums, index heads) const;

  /// o[c][r] += weight of query r and key j times c_rj[c], for every key of the tile. The weights
  /// are after dropout and not yet divided by their sum.
  virtual void apply(const TileSite& site, const ScoreTile<const T>& weights, Rows<T> o) const;
  /// dweights += factor d_o . c
  virtual void pull_weights(const TileSite& site, Rows<const T> d_o, T factor,
                            const ScoreTile<T>& dweights) const;
  /// sums += the gradient of the parameters, that of c_ij being weight * d_o.
  virtual void pull_parameters(const TileSite& site, const ScoreTile<const T>& weights,
                               Rows<const T> d_o, double* sums) const;

  /// Names the memory of its parameters and of their gradients, so that an output that overlaps it
  /// is an error.
  virtual void name_parameters(OverlapCheck&) const {}
  virtual void name_gradients(OverlapCheck&) const {}
  /// Throws Error(kShape) unless the part fits the call.
  virtual void check_shape(const AttentionSizes& sizes) const;
  virtual std::string name() const = 0;
};

/// Zero or more parts, applied in order.
template <class T>
using Values = Parts<ValuePart<T>>;

}  // namespace fovea
