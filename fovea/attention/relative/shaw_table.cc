// SPDX-License-Identifier: Apache-2.0
#include "fovea/attention/relative/shaw_table.h"

#include <algorithm>

#include "fovea/base/check.h"

namespace fovea::detail {

template <class T>
index ShawTable<T>::row_at(index distance) const {
  const index s = clip();
  return std::clamp(order == ShawOrder::kQueryMinusKey ? -distance : distance, -s, s) + s;
}

template <class T>
void ShawTable<T>::store_gradient(const double* sums, index heads) const {
  const index size = gradient_size();
  for (index n = 0; n < size; ++n) {
    double total = 0;
    for (index h = 0; h < heads; ++h) total += sums[h * size + n];
    gradient[n / rows.columns][n % rows.columns] = static_cast<T>(total);
  }
}

template <class T>
void ShawTable<T>::check_rows() const {
  check(rows.rows % 2 == 1, "shaw: the table must have 2s+1 rows, an odd number; it has {}",
        rows.rows);
}

template <class T>
void ShawTable<T>::check_width(std::string_view letter, index width) const {
  const auto& [table, dtable, of] = *this;
  check(
      table.columns == width,
      "attention: the table of shaw must be [2s+1, {}={}]; it is [{}, {}]{}", letter, width,
      table.rows, table.columns,
      table.columns + 1 == width && letter == "D" ? "; the score concat makes rows of D + 1" : "");
  check(table.data != nullptr, "attention: the table of shaw has a shape but no data");
  check(dtable.data == nullptr || (dtable.rows == table.rows && dtable.columns == width),
        "attention: dtable of shaw must be [{}, {}={}] or empty; it is [{}, {}]", table.rows,
        letter, width, dtable.rows, dtable.columns);
}

template struct ShawTable<float>;
template struct ShawTable<double>;

}  // namespace fovea::detail
