// SPDX-License-Identifier: Apache-2.0
// Rows in which dq is summed up.
#pragma once

#include "fovea/base/types.h"

namespace fovea::detail {

/// Where a chunk of keys sums up its part of dq: rows of whole vectors.
template <class T>
struct QueryGradient {
  T* data = nullptr;
  index first_head = 0, begin = 0;  ///< of the first row
  index head_stride = 0, row_stride = 0;

  T* row(index head, index query) const {
    return data + (head - first_head) * head_stride + (query - begin) * row_stride;
  }
};

}  // namespace fovea::detail
