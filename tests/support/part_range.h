// SPDX-License-Identifier: Apache-2.0
// Parameters that are tensors of a part of attention.
#pragma once

#include <algorithm>
#include <cmath>
#include <string_view>

#include "fovea/parts/part_table.h"

namespace fovea {

inline bool is_bounded(const PartRange& range) {
  return std::isfinite(range.least) || std::isfinite(range.most);
}

/// Numbers well inside a bounded range, at most 1 apart.
inline PartRange inside(const PartRange& range) {
  const double least = std::isfinite(range.least) ? range.least + 0.1 : range.most - 1.1;
  return {least, std::min(range.most - 0.1, least + 1)};
}

/// Whether it is the tensor of a part that has a range: outside it the gradient is not that of the
/// forward, on purpose. All ranges hold .1 to 1.1.
inline bool has_range(std::string_view parameter) {
  const std::string_view name = parameter.substr(parameter.rfind('.') + 1);
  for (const AttentionPart& part : attention_parts()) {
    if (part.tensor == name) return is_bounded(part.range);
  }
  return false;
}

}  // namespace fovea
