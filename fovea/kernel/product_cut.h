// SPDX-License-Identifier: Apache-2.0
// How a product is cut into items of work. Nothing outside gemm needs this header.
#pragma once

#include <algorithm>

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
  /// the rows. If false: all parts of the rows for a part of the columns.
  bool columns_first = false;

  index items() const { return rows.parts() * columns.parts(); }
  struct Tile {
    AxisCut::Part rows, columns;
  };
  Tile item(index i) const {
    if (columns_first) return {rows.part(i / columns.parts()), columns.part(i % columns.parts())};
    return {rows.part(i % rows.parts()), columns.part(i / rows.parts())};
  }
};

}  // namespace fovea::detail
