// SPDX-License-Identifier: Apache-2.0
#include "fovea/attention/bias/shaw.h"

#include <utility>

#include "fovea/attention/relative/shaw.h"

namespace fovea::bias {

namespace {

/// Rows x and a factor, such that factor * x = scale * q.
template <class T>
std::pair<Rows<const T>, T> scaled(const TileRows<T>& rows) {
  if (rows.scaled_q.data != nullptr) return {rows.scaled_q, T{1}};
  return {rows.q, rows.scale};
}

}  // namespace

template <class T>
Shaw<T>::Shaw(Rows<const T> table, Rows<T> dtable, ShawOrder order) : table_{table, dtable, order} {
  table_.check_rows();
}

template <class T>
T Shaw<T>::apply_one(const ScoreSite& site, const ScoreRows<T>& rows, T score) const {
  const T* const a = table_.rows[table_.row_of(site)];
  T sum = 0;
  for (index d = 0; d < rows.q.size; ++d) sum += rows.q[d] * a[d];
  return score + rows.scale * sum;
}

template <class T>
T Shaw<T>::pull_one(const ScoreSite& site, const ScoreRows<T>& rows, T, T dscore,
                    const ScoreGradients<T>& gradients) const {
  const index row = table_.row_of(site), D = rows.q.size;
  const T* const a = table_.rows[row];
  const T scaled = rows.scale * dscore;
  for (index d = 0; d < D; ++d) gradients.dq[d] += scaled * a[d];
  for (index d = 0; gradient_size() > 0 && d < D; ++d) {
    gradients.parameters[row * D + d] += static_cast<double>(scaled * rows.q[d]);
  }
  return dscore;
}

template <class T>
void Shaw<T>::store_gradient(const double* sums, index heads) const {
  table_.store_gradient(sums, heads);
}

template <class T>
void Shaw<T>::apply(const TileSite& site, const TileRows<T>& rows, const ScoreTile<T>& tile) const {
  const auto [q, factor] = scaled(rows);
  detail::add_shaw_products(site, table_, q, factor, tile);
}

template <class T>
void Shaw<T>::pull(const TileSite& site, const TileRows<T>& rows, const ScoreTile<T>& scores,
                   const ScoreTile<T>& dscores, const TileGradients<T>& gradients) const {
  if (dscores.lanes == TileLanes::kQueries) {
    return BiasPart<T>::pull(site, rows, scores, dscores, gradients);
  }
  double* const dtable = gradient_size() > 0 ? gradients.parameters : nullptr;
  const auto [q, factor] = scaled(rows);
  detail::pull_shaw_products<T>(site, table_, q, factor, dscores.rows(site),
                                {gradients.dq, rows.scale, dtable});
}

template <class T>
void Shaw<T>::name_parameters(OverlapCheck& memory) const {
  memory.read("the table of shaw", table_.rows);
}

template <class T>
void Shaw<T>::name_gradients(OverlapCheck& memory) const {
  memory.write("the gradient of shaw", table_.gradient);
}

template <class T>
void Shaw<T>::check_shape(const AttentionSizes& sizes) const {
  table_.check_width("D", sizes.D);
}

template <class T>
std::string Shaw<T>::name() const {
  return table_.order == ShawOrder::kKeyMinusQuery ? "shaw(j-i)" : "shaw";
}

template class Shaw<float>;
template class Shaw<double>;

}  // namespace fovea::bias
