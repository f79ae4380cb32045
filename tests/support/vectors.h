// SPDX-License-Identifier: Apache-2.0
// Views as vectors, for matchers.
#pragma once

#include <type_traits>
#include <vector>

#include "fovea/base/view.h"

namespace fovea {

template <class T>
std::vector<std::remove_const_t<T>> to_vector(Vec<T> x) {
  return {x.begin(), x.end()};
}

/// Row after row.
template <class T>
std::vector<std::remove_const_t<T>> to_vector(Rows<T> x) {
  std::vector<std::remove_const_t<T>> all;
  for (index n = 0; n < x.rows; ++n) all.insert(all.end(), x[n], x[n] + x.columns);
  return all;
}

}  // namespace fovea
