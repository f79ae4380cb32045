// SPDX-License-Identifier: Apache-2.0
// How a product is cut into items of work. Nothing outside gemm needs this header.
#pragma once

#include <algorithm>

#include "fovea/base/equal_parts.h"
#include "fovea/base/types.h"

namespace fovea::detail {

/// [0, size) in equal parts of at most `most`, rounded up to a multiple of `step`; the last one may
/// be shorter.
class AxisCut {
 public:
  AxisCut() = default;
  AxisCut(index size, index most, index step);
  struct Part {
    index begin, end;
  };
  Part part(index i) const { return {i * length_, std::min(size_, (i + 1) * length_)}; }
  index parts() const { return parts_; }
  index length() const { return length_; }

 private:
  index size_ = 0, length_ = 0, parts_ = 0;
};

/// The items of a product: tiles of C.
struct ProductCut {
  AxisCut rows, columns;
  /// The order of the items: all parts of the columns for a part of the rows, then the next part of
  /// the rows. If false: all parts of the rows of a group for a part of the columns.
  bool columns_first = false;
  /// Groups of the rows, as many as threads. A thread begins with a share of the items that is its
  /// own (Context::for_each), so it has some rows to itself, as in passes over rows.
  index groups = 1;

  index items() const { return rows.parts() * columns.parts(); }
  struct Tile {
    AxisCut::Part rows, columns;
  };
  Tile item(index i) const {
    const index part = i / columns.parts();
    if (columns_first) return {rows.part(part), columns.part(i % columns.parts())};
    const EqualParts cut{rows.parts(), groups};
    const index group = cut.holding(part);
    const index begin = cut.begin(group), size = cut.size(group);
    const index place = i - begin * columns.parts();
    return {rows.part(begin + place % size), columns.part(place / size)};
  }
};

/// The items of two products in one list, whose shares (Context::for_each) hold their part of the
/// first product, then of the second.
struct TwoProducts {
  index first, second;
  index shares;

  index items() const { return first + second; }
  struct Item {
    bool is_of_first;
    index number;
  };
  Item item(index i) const {
    const EqualParts both{items(), shares}, of_first{first, shares};
    const index share = both.holding(i), place = i - both.begin(share);
    const index begin = of_first.begin(share);
    if (place < of_first.size(share)) return {true, begin + place};
    return {false, both.begin(share) - begin + place - of_first.size(share)};
  }
};

}  // namespace fovea::detail
