// SPDX-License-Identifier: Apache-2.0
// Prefetches a row that lies anywhere in memory, where no hardware looks for it.
#pragma once

#include "fovea/base/view.h"
#include "fovea/simd/prefetch.h"

namespace fovea::detail {

template <class T>
void prefetch_row(Rows<T> rows, index row) {
  const auto* const begin = reinterpret_cast<const std::byte*>(rows[row]);
  const auto bytes = rows.columns * static_cast<index>(sizeof(T));
  for (index at = 0; at < bytes; at += kCacheLine) prefetch_line(begin + at);
}

}  // namespace fovea::detail
