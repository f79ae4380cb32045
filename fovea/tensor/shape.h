// SPDX-License-Identifier: Apache-2.0
// The sizes of a tensor's axes.
#pragma once

#include <initializer_list>
#include <span>
#include <string>
#include <string_view>

#include "fovea/base/types.h"

namespace fovea {

/// At most 6 axes, kept inline: trivially copyable, nothing allocated. The constructors check that
/// no size is negative and that the number of values fits in an index (Error kShape). A shape
/// without axes is that of a scalar: size 1.
class Shape {
 public:
  static constexpr int kMaxAxes = 6;

  Shape() = default;
  Shape(std::initializer_list<index> sizes);
  explicit Shape(std::span<const index> sizes);

  int axes() const { return axes_; }
  /// The size of an axis; -1 is the last one. Throws kShape if there is no such axis.
  index operator[](int axis) const;
  index front() const { return (*this)[0]; }
  index back() const { return (*this)[-1]; }
  const index* begin() const { return sizes_; }
  const index* end() const { return sizes_ + axes_; }

  /// The number of values: the product of the sizes.
  index size() const { return size_; }

  /// This shape with one axis replaced.
  Shape with(int axis, index size) const;

  friend bool operator==(const Shape& a, const Shape& b);

 private:
  int resolve(int axis) const;

  index sizes_[kMaxAxes] = {};
  index size_ = 1;
  int axes_ = 0;
};

/// "[2, 5]".
std::string to_string(const Shape& shape);
/// "[B=2, T=5]": each name goes with one axis; an axis without a name is a number alone.
std::string to_string(const Shape& shape, std::initializer_list<std::string_view> names);

}  // namespace fovea
