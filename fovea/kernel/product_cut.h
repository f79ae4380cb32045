// SPDX-License-Identifier: Apache-2.0
// How a product is cut into items of work. Nothing outside gemm needs this header.
#pragma once

#include <algorithm>

#include "fovea/base/types.h"

namespace fovea::detail {

/// [0, size) in equal parts of at most `most`, each but the last a multiple of `step`.
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
  bool columns_first = false;  ///< the order: all columns of a part of the rows, or the reverse

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
