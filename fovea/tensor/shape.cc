// SPDX-License-Identifier: Apache-2.0
#include "fovea/tensor/shape.h"

#include <algorithm>
#include <limits>
#include <type_traits>

#include "fovea/base/check.h"

namespace fovea {

static_assert(std::is_trivially_copyable_v<Shape>);

namespace {

std::string joined(std::span<const index> sizes) {
  std::string text;
  for (const index size : sizes) {
    if (!text.empty()) text += ", ";
    text += std::to_string(size);
  }
  return "[" + text + "]";
}

}  // namespace

Shape::Shape(std::initializer_list<index> sizes) : Shape(std::span(sizes.begin(), sizes.size())) {}

Shape::Shape(std::span<const index> sizes) {
  check(sizes.size() <= kMaxAxes, "shape: at most {} axes; got {}", kMaxAxes, sizes.size());
  axes_ = static_cast<int>(sizes.size());
  std::copy(sizes.begin(), sizes.end(), sizes_);
  // A zero makes the whole product zero and would hide an overflow, so the other sizes are
  // multiplied apart.
  index nonzero = 1;
  for (const index size : sizes) {
    check(size >= 0, "shape: sizes must not be negative; got {}", joined(sizes));
    size_ *= size == 0 ? 0 : 1;
    if (size == 0) continue;
    check(nonzero <= std::numeric_limits<index>::max() / size,
          "shape: {} has more values than can be counted", joined(sizes));
    nonzero *= size;
  }
  size_ *= nonzero;
}

int Shape::resolve(int axis) const {
  const int resolved = axis < 0 ? axis + axes_ : axis;
  check(resolved >= 0 && resolved < axes_, "shape: {} has no axis {}", to_string(*this), axis);
  return resolved;
}

index Shape::operator[](int axis) const { return sizes_[resolve(axis)]; }

Shape Shape::with(int axis, index size) const {
  index sizes[kMaxAxes];
  std::copy(begin(), end(), sizes);
  sizes[resolve(axis)] = size;
  return Shape(std::span<const index>(sizes, static_cast<std::size_t>(axes_)));
}

bool operator==(const Shape& a, const Shape& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end());
}

std::string to_string(const Shape& shape) { return joined({shape.begin(), shape.end()}); }

std::string to_string(const Shape& shape, std::initializer_list<std::string_view> names) {
  std::string text;
  auto axis_name = names.begin();
  for (const index size : shape) {
    if (!text.empty()) text += ", ";
    if (axis_name != names.end()) text += std::string(*axis_name++) + "=";
    text += std::to_string(size);
  }
  return "[" + text + "]";
}

}  // namespace fovea
