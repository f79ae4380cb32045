// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>

#include "fovea/base/types.h"

namespace fovea {

/// A row of items in parts whose lengths differ by one at most, the longer ones first. There is at
/// least one part. If there are fewer items than parts, the last parts are empty.
struct EqualParts {
  index items, parts;

  index begin(index part) const { return part * (items / parts) + std::min(part, items % parts); }
  index size(index part) const { return items / parts + (part < items % parts ? 1 : 0); }

  /// The part that holds `item`.
  index holding(index item) const {
    const index length = items / parts, longer = items % parts;
    const index first_shorter = longer * (length + 1);
    if (item < first_shorter) return item / (length + 1);
    return longer + (item - first_shorter) / length;
  }
};

}  // namespace fovea
