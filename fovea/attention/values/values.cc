// SPDX-License-Identifier: Apache-2.0
#include "fovea/attention/values/values.h"

#include <algorithm>

#include "fovea/base/memory.h"

namespace fovea {

template <class T>
void ValuePart<T>::add_parameters(const ScoreSite&, Vec<const T>, double*) const {}

template <class T>
void ValuePart<T>::store_gradient(const double*, index) const {}

template <class T>
void ValuePart<T>::check_shape(const AttentionSizes&) const {}

template <class T>
void ValuePart<T>::apply(const TileSite& site, const ScoreTile<const T>& weights, Rows<T> o) const {
  Scratch scratch;
  const Vec<T> c{scratch.allocate<T>(o.rows), o.rows}, sum{scratch.allocate<T>(o.rows), o.rows};
  for (index r = 0; r < site.queries; ++r) {
    std::fill(sum.begin(), sum.end(), T{0});
    for (index j = 0; j < site.keys; ++j) {
      const T weight = weights.at(r, j);
      if (weight == T{0}) continue;
      vector(site.at(r, j), c);
      for (index n = 0; n < c.size; ++n) sum[n] += weight * c[n];
    }
    for (index n = 0; n < sum.size; ++n) o[n][r] += sum[n];
  }
}

template <class T>
void ValuePart<T>::pull_weights(const TileSite& site, Rows<const T> d_o, T factor,
                                const ScoreTile<T>& dweights) const {
  Scratch scratch;
  const Vec<T> c{scratch.allocate<T>(d_o.columns), d_o.columns};
  for (index r = 0; r < site.queries; ++r) {
    for (index j = 0; j < site.keys; ++j) {
      vector(site.at(r, j), c);
      double sum = 0;  // in double, as it must cancel against d_o . o
      for (index n = 0; n < c.size; ++n) {
        sum += static_cast<double>(d_o[r][n]) * static_cast<double>(c[n]);
      }
      dweights.at(r, j) += static_cast<T>(static_cast<double>(factor) * sum);
    }
  }
}

template <class T>
void ValuePart<T>::pull_parameters(const TileSite& site, const ScoreTile<const T>& weights,
                                   Rows<const T> d_o, double* sums) const {
  if (gradient_size() == 0) return;
  Scratch scratch;
  const Vec<T> dvector{scratch.allocate<T>(d_o.columns), d_o.columns};
  for (index r = 0; r < site.queries; ++r) {
    for (index j = 0; j < site.keys; ++j) {
      const T weight = weights.at(r, j);
      if (weight == T{0}) continue;
      for (index n = 0; n < dvector.size; ++n) dvector[n] = weight * d_o[r][n];
      add_parameters(site.at(r, j), dvector, sums);
    }
  }
}

template class ValuePart<float>;
template class ValuePart<double>;

}  // namespace fovea
