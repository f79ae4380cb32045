// SPDX-License-Identifier: Apache-2.0
#include "fovea/attention/overlap.h"

#include <algorithm>
#include <cstdint>

#include "fovea/base/check.h"

namespace fovea::detail {

namespace {

constexpr index kMostBytes = index{1} << 60;
constexpr int kMostSteps = 256;

index stride_bytes(const MemoryView& view, const MemoryAxis& axis) {
  return axis.size == 1 ? 0 : checked_product(axis.stride, view.value_bytes, view.name);
}

AddressRange span_of(const MemoryView& view) {
  const auto begin = static_cast<index>(reinterpret_cast<std::uintptr_t>(view.data));
  index bytes = checked_product(view.width, view.value_bytes, view.name);
  bool any = bytes > 0;
  for (const MemoryAxis& axis : view.axes) {
    any = any && axis.size > 0;
    if (axis.size <= 1) continue;
    const index more = checked_product(axis.size - 1, stride_bytes(view, axis), view.name);
    check(more <= kMostBytes - bytes, "attention: {} spans more bytes than there are", view.name);
    bytes += more;
  }
  return {begin, any ? begin + bytes : begin};
}

bool apart(const AddressRange& a, const AddressRange& b) {
  return a.begin == a.end || b.begin == b.end || a.end <= b.begin || b.end <= a.begin;
}

// The differences of the places of two runs, one of each view: sums of n stride, low <= n <= high,
// over the strides of both views.
class Differences {
 public:
  Differences(const MemoryView& a, const MemoryView& b) {
    for (const MemoryAxis& axis : a.axes) add(axis.size, stride_bytes(a, axis), Side::kFirst);
    for (const MemoryAxis& axis : b.axes) add(axis.size, stride_bytes(b, axis), Side::kSecond);
    std::sort(steps_.begin(), steps_.begin() + count_,
              [](const Step& x, const Step& y) { return x.stride > y.stride; });
    for (std::size_t n = count_; n-- > 0;) {
      const Step& step = steps_[n];
      least_[n] = least_[n + 1] + step.low * step.stride;
      most_[n] = most_[n + 1] + step.high * step.stride;
    }
  }

  // Whether one of the differences is in [low, high]. Tries the longest stride first: with nested
  // strides, at most three numbers are left to try for each.
  bool any_in(index low, index high, std::size_t n = 0) {
    if (high < least_[n] || low > most_[n] || ++tried_ > kMostSteps) return false;
    if (n == count_) return true;
    const auto& [stride, first, last] = steps_[n];
    const index begin = std::max(first, divide_up(low - most_[n + 1], stride));
    const index end = std::min(last, -divide_up(least_[n + 1] - high, stride));
    for (index i = begin; i <= end && tried_ <= kMostSteps; ++i) {
      if (any_in(low - i * stride, high - i * stride, n + 1)) return true;
    }
    return false;
  }

 private:
  enum class Side { kFirst, kSecond };
  struct Step {
    index stride, low, high;
  };

  static index divide_up(index a, index b) { return a / b + (a % b > 0 ? 1 : 0); }

  void add(index size, index stride, Side side) {
    if (stride == 0) return;
    auto* const end = steps_.begin() + count_;
    auto* step =
        std::find_if(steps_.begin(), end, [&](const Step& s) { return s.stride == stride; });
    if (step == end) {
      *step = {stride, 0, 0};
      ++count_;
    }
    (side == Side::kFirst ? step->high : step->low) += side == Side::kFirst ? size - 1 : 1 - size;
  }

  std::array<Step, 6> steps_;
  std::array<index, 7> least_ = {}, most_ = {};  // of the sums from a step on
  std::size_t count_ = 0;
  int tried_ = 0;
};

// A run of `a` at x and a run of `b` at y overlap if y - width of a < x < y + width of b.
bool runs_meet(const MemoryView& a, const MemoryView& b, index between) {
  return Differences(a, b).any_in(between - a.width * a.value_bytes + 1,
                                  between + b.width * b.value_bytes - 1);
}

}  // namespace

bool overlap(const MemoryView& a, const MemoryView& b) {
  const AddressRange of_a = span_of(a), of_b = span_of(b);
  return !apart(of_a, of_b) && runs_meet(a, b, of_b.begin - of_a.begin);
}

}  // namespace fovea::detail

namespace fovea {

void OverlapCheck::add(const Place& place) {
  if (count_ < kMost) places_[count_++] = place;
}

void OverlapCheck::add_read(const detail::MemoryView& view) { add({view, detail::span_of(view)}); }

void OverlapCheck::add_written(const detail::MemoryView& view) {
  const detail::AddressRange span = detail::span_of(view);
  for (std::size_t n = 0; n < count_; ++n) {
    const Place& other = places_[n];
    if (detail::apart(span, other.span)) continue;
    check(!detail::runs_meet(view, other.view, other.span.begin - span.begin),
          Hint{"give each tensor that is written memory of its own"},
          "attention: {} overlaps {}: what is written may share no memory with another tensor of "
          "the call",
          view.name, other.view.name);
  }
  add({view, span});
}

}  // namespace fovea
