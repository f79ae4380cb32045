// SPDX-License-Identifier: Apache-2.0
#include "fovea/attention/observe/column_mass.h"

namespace fovea::observe {

template <class T>
void ColumnMass<T>::row(const ObservedRow<T>& row) const {
  const Sequence& sequence = row.sequence;
  for (index j = 0; j < row.weights.size; ++j) {
    mass_.at(sequence.batch, row.head, sequence.key_row + j) += row.weights[j];
  }
}

template <class T>
void ColumnMass<T>::clear() const {
  detail::fill(mass_, T{0});
}

template <class T>
void ColumnMass<T>::columns(const ObservedColumns& columns) const {
  const auto& [sequence, head, key, sums] = columns;
  for (index j = 0; j < sums.size; ++j) {
    mass_.at(sequence.batch, head, sequence.key_row + key + j) = static_cast<T>(sums[j]);
  }
}

template <class T>
void ColumnMass<T>::name_memory(OverlapCheck& memory) const {
  memory.write("column_mass", mass_);
}

template <class T>
void ColumnMass<T>::check_shape(const AttentionSizes& sizes) const {
  detail::check_rows_written("column_mass", mass_, {sizes.B, sizes.H, sizes.S}, "S");
}

template class ColumnMass<float>;
template class ColumnMass<double>;

}  // namespace fovea::observe
