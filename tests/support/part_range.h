// SPDX-License-Identifier: Apache-2.0
// Parameters that are tensors of a part of attention.
#pragma once

#include <cmath>
#include <string_view>

#include "fovea/parts/part_table.h"

namespace fovea {

/// Whether it is the tensor of a part that has a range: outside it the gradient is not that of the
/// forward, on purpose. All ranges hold .1 to 1.1.
inline bool has_range(std::string_view parameter) {
  const std::string_view name = parameter.substr(parameter.rfind('.') + 1);
  for (const AttentionPart& part : attention_parts()) {
    if (part.tensor == name) return std::isfinite(part.range.least);
  }
  return false;
}

}  // namespace fovea
