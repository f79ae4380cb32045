// SPDX-License-Identifier: Apache-2.0
// Arrays of any sizes, cut into segments of about equal size: many small ones and one large one are
// then distributed equally well over threads.
#pragma once

#include <algorithm>

#include "fovea/base/memory.h"
#include "fovea/base/types.h"

namespace fovea {

/// A segment holds values [first, first + n) of array number `array`.
struct ArraySegment {
  index array, first, n;
};

class ArraySegments {
 public:
  /// size_of(i) is the size of array i of `arrays`; every segment but the last one of an array has
  /// `length` values. Valid as long as the scope of `scratch`.
  template <class SizeOf>
  ArraySegments(Scratch& scratch, index arrays, index length, const SizeOf& size_of)
      : begins_(scratch.allocate<index>(arrays + 1)),
        sizes_(scratch.allocate<index>(std::max<index>(arrays, 1))),
        arrays_(arrays),
        length_(length) {
    begins_[0] = 0;
    for (index i = 0; i < arrays; ++i) {
      sizes_[i] = size_of(i);
      begins_[i + 1] = begins_[i] + (sizes_[i] + length - 1) / length;
    }
  }

  index count() const { return begins_[arrays_]; }
  ArraySegment operator[](index number) const {
    const index array = std::upper_bound(begins_, begins_ + arrays_ + 1, number) - begins_ - 1;
    const index first = (number - begins_[array]) * length_;
    return {array, first, std::min(length_, sizes_[array] - first)};
  }

 private:
  index* begins_;  // of each array, and the number of all segments
  index* sizes_;
  index arrays_, length_;
};

}  // namespace fovea
