// SPDX-License-Identifier: Apache-2.0
#include "fovea/attention/values/shaw.h"

#include <algorithm>

#include "fovea/attention/relative/shaw.h"

namespace fovea::values {

template <class T>
Shaw<T>::Shaw(Rows<const T> table, Rows<T> dtable, ShawOrder order) : table_{table, dtable, order} {
  table_.check_rows();
}

template <class T>
void Shaw<T>::vector(const ScoreSite& site, Vec<T> to) const {
  std::copy_n(table_.rows[table_.row_of(site)], to.size, to.data);
}

template <class T>
void Shaw<T>::add_parameters(const ScoreSite& site, Vec<const T> dvector, double* sums) const {
  if (gradient_size() == 0) return;
  double* const row = sums + table_.row_of(site) * dvector.size;
  for (index c = 0; c < dvector.size; ++c) row[c] += static_cast<double>(dvector[c]);
}

template <class T>
void Shaw<T>::store_gradient(const double* sums, index heads) const {
  table_.store_gradient(sums, heads);
}

template <class T>
void Shaw<T>::apply(const TileSite& site, const ScoreTile<const T>& weights, Rows<T> o) const {
  if (!detail::shaw_vectors_fit(weights, o)) return ValuePart<T>::apply(site, weights, o);
  detail::add_shaw_vectors(site, table_, weights, o);
}

template <class T>
void Shaw<T>::pull_weights(const TileSite& site, Rows<const T> d_o, T factor,
                           const ScoreTile<T>& dweights) const {
  detail::add_shaw_products(site, table_, d_o, factor, dweights);
}

template <class T>
void Shaw<T>::pull_parameters(const TileSite& site, const ScoreTile<const T>& weights,
                              Rows<const T> d_o, double* sums) const {
  if (gradient_size() == 0) return;
  if (weights.lanes == TileLanes::kQueries) {
    return ValuePart<T>::pull_parameters(site, weights, d_o, sums);
  }
  detail::pull_shaw_products<T>(site, table_, d_o, T{1}, weights.rows(site), {{}, T{1}, sums});
}

template <class T>
void Shaw<T>::name_parameters(OverlapCheck& memory) const {
  memory.read("the table of shaw on values", table_.rows);
}

template <class T>
void Shaw<T>::name_gradients(OverlapCheck& memory) const {
  memory.write("the gradient of shaw on values", table_.gradient);
}

template <class T>
void Shaw<T>::check_shape(const AttentionSizes& sizes) const {
  table_.check_width("Dv", sizes.Dv);
}

template <class T>
std::string Shaw<T>::name() const {
  return table_.order == ShawOrder::kKeyMinusQuery ? "shaw(j-i)" : "shaw";
}

template class Shaw<float>;
template class Shaw<double>;

}  // namespace fovea::values
