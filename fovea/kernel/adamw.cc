// SPDX-License-Identifier: Apache-2.0
#include "fovea/kernel/adamw.h"

#include <algorithm>
#include <cmath>
#include <type_traits>

#include "fovea/base/memory.h"
#include "fovea/kernel/adamw_factors.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "fovea/kernel/adamw.cc"
#include "hwy/foreach_target.h"  // compiles this file once for each instruction set
//
#include "fovea/kernel/adamw-inl.h"
#include "fovea/simd/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace fovea {
namespace HWY_NAMESPACE {
namespace {

// Memory bandwidth limits the speed: value, gradient, m and v are read once; value, m and v are
// written once.
template <class T>
void Update(const detail::AdamWFactors<T>& f, const detail::AdamWRun<T>& run, index n) {
  ForEachLane<T>(n, [f, run](auto lanes, index i) {
    const AdamWVectors<T> factors{lanes.Set(f.rate1),     lanes.Set(f.rate2),
                                  lanes.Set(f.root),      lanes.Set(f.epsilon),
                                  lanes.Set(f.step_size), lanes.Set(f.shrink)};
    const auto g = hn::Mul(lanes.Load(run.gradient + i), lanes.Set(f.gradient_scale));
    auto x = lanes.Load(run.value + i), m = lanes.Load(run.m + i), v = lanes.Load(run.v + i);
    AdamWUpdate<T>(g, factors, x, m, v);
    lanes.Store(x, run.value + i);
    lanes.Store(m, run.m + i);
    lanes.Store(v, run.v + i);
  });
}

// float is converted to double first, so that 1e20 squared does not overflow and 1e-30 squared does
// not become 0.
template <class T>
double Squares(const T* x, index n) {
  if constexpr (std::is_same_v<T, double>) {
    return SumOfSquares(x, n);
  } else {
    return SumOf<double>(n, [=](auto lanes, index i) {
      const hn::Rebind<float, Tag<double>> narrow;
      const auto v = hn::PromoteTo(lanes.d, [&] {
        if constexpr (std::is_same_v<decltype(lanes), FullLanes<double>>) {
          return hn::LoadU(narrow, x + i);
        } else {
          HWY_ALIGN float buffer[kLanes<double>] = {};
          for (index k = 0; k < lanes.count; ++k) buffer[k] = x[i + k];
          return hn::Load(narrow, buffer);
        }
      }());
      return hn::Mul(v, v);
    });
  }
}

auto UpdateKernel() { return PerPrecision{Update<float>, Update<double>}; }
auto SquaresKernel() { return PerPrecision{Squares<float>, Squares<double>}; }

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace fovea
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include "fovea/base/profile.h"
namespace fovea {
namespace {

HWY_EXPORT(UpdateKernel);
HWY_EXPORT(SquaresKernel);

// All parameters are cut into segments, so that many small ones and one large one are distributed
// equally well over threads. A sum adds the sums of the segments.
constexpr index kSegment = 4096;

// Values [first, first + n) of a slot. In a table they belong to its rows number [begin, end).
struct Segment {
  std::size_t slot;
  index first;
  index n;
  index begin = 0, end = 0;
};

// A pass over the values with a gradient. Its shape is that of all values, the same in each update.
template <class T>
Work pass_over_slots(const char* what, std::span<const AdamWSlot<T>> slots, int times) {
  index all = 0, read = 0;
  for (const AdamWSlot<T>& slot : slots) {
    all += slot.value.size;
    read += slot.gradient.size;
  }
  Work work = pass_over<T>(what, all, 1, times);
  work.bytes = pass_over<T>(what, read, 1, times).bytes;
  return work;
}

template <class T>
void check_rows_of(const AdamWSlot<T>& slot, std::size_t s) {
  const index V = slot.value.size / slot.columns;
  check(slot.value.size == V * slot.columns && slot.gradient.size == slot.rows.size * slot.columns,
        "adamw: slot {} has rows of {} columns; its value has size {}, the gradient of {} rows {}",
        s, slot.columns, slot.value.size, slot.rows.size, slot.gradient.size);
  for (index i = 0; i < slot.rows.size; ++i) {
    const auto [row, place] = slot.rows[i];
    const index before = i > 0 ? slot.rows[i - 1].row : -1;
    check(row > before && row < V && place >= 0 && place < slot.rows.size,
          "adamw: rows[{}] of slot {} is row {} at place {}; rows ascend and are below {}", i, s,
          row, place, V);
  }
}

template <class T>
void check_slots(std::span<const AdamWSlot<T>> slots) {
  for (std::size_t s = 0; s < slots.size(); ++s) {
    const AdamWSlot<T>& slot = slots[s];
    const index size = slot.value.size;
    const index gradient = slot.columns > 0 ? size : slot.gradient.size;
    check(gradient == size && slot.m.size == size && slot.v.size == size,
          "adamw: value, gradient, m and v of slot {} must have one size; they have {}, {}, {}, {}",
          s, size, gradient, slot.m.size, slot.v.size);
    if (slot.columns > 0) check_rows_of(slot, s);
  }
}

// Calls add(segment) for every segment that holds a row with a gradient, in ascending order. If two
// segments share a row, each holds its part.
template <class Add>
void for_each_segment_with_rows(Vec<const GradientRow> rows, index columns, index size, Add&& add) {
  Segment segment{.slot = 0, .first = -1, .n = 0};
  for (index i = 0; i < rows.size; ++i) {
    const index first = rows[i].row * columns, last = first + columns - 1;
    for (index begin = first / kSegment * kSegment; begin <= last; begin += kSegment) {
      if (begin != segment.first) {
        if (segment.n > 0) add(segment);
        segment = {0, begin, std::min(kSegment, size - begin), i, i};
      }
      segment.end = i + 1;
    }
  }
  if (segment.n > 0) add(segment);
}

template <class T>
Vec<const Segment> segments_of(Scratch& scratch, std::span<const AdamWSlot<T>> slots) {
  index most = 0;
  for (const AdamWSlot<T>& slot : slots) {
    const bool whole = slot.columns == 0;
    most += whole ? (slot.gradient.size + kSegment - 1) / kSegment
                  : slot.rows.size * (slot.columns / kSegment + 2);
  }
  Segment* const segments = scratch.allocate<Segment>(std::max<index>(most, 1));
  Segment* next = segments;
  for (std::size_t s = 0; s < slots.size(); ++s) {
    const AdamWSlot<T>& slot = slots[s];
    if (slot.columns > 0) {
      for_each_segment_with_rows(slot.rows, slot.columns, slot.value.size, [&](Segment segment) {
        segment.slot = s;
        *next++ = segment;
      });
      continue;
    }
    for (index first = 0; first < slot.gradient.size; first += kSegment)
      *next++ = {s, first, std::min(kSegment, slot.gradient.size - first)};
  }
  return {segments, next - segments};
}

// The segments of an update: of a table, `first` and `n` count its rows with a gradient.
template <class T>
Vec<const Segment> runs_of(Scratch& scratch, std::span<const AdamWSlot<T>> slots) {
  const auto at_once = [](const AdamWSlot<T>& slot) {
    return slot.columns > 0 ? std::max<index>(kSegment / slot.columns, 1) : kSegment;
  };
  const auto size = [](const AdamWSlot<T>& slot) {
    return slot.columns > 0 ? slot.rows.size : slot.gradient.size;
  };
  index count = 0;
  for (const AdamWSlot<T>& slot : slots) count += (size(slot) + at_once(slot) - 1) / at_once(slot);
  Segment* const runs = scratch.allocate<Segment>(std::max<index>(count, 1));
  Segment* next = runs;
  for (std::size_t s = 0; s < slots.size(); ++s)
    for (index first = 0; first < size(slots[s]); first += at_once(slots[s]))
      *next++ = {s, first, std::min(at_once(slots[s]), size(slots[s]) - first)};
  return {runs, count};
}

// The order in which segments are worked on: those in the first sixteenth of every slot, then those
// in the second, and so on. Each of up to 16 threads begins with a share of this order that is its
// own, the same part of each parameter in every update, moments included. A product that makes a
// gradient begins with its rows in the same way, so most of what a thread reads is in its own
// caches. (Another core's are far where cores are not of one cluster.)
Vec<const index> by_position(Scratch& scratch, Vec<const Segment> segments, std::size_t slots) {
  constexpr index kParts = 16;
  index* const begins = scratch.allocate<index>(static_cast<index>(slots) + 1);
  std::fill_n(begins, slots + 1, segments.size);
  for (index i = segments.size - 1; i >= 0; --i) begins[segments[i].slot] = i;
  for (std::size_t s = slots; s-- > 0;) begins[s] = std::min(begins[s], begins[s + 1]);
  index* const order = scratch.allocate<index>(std::max<index>(segments.size, 1));
  index* next = order;
  for (index part = 0; part < kParts; ++part)
    for (std::size_t s = 0; s < slots; ++s) {
      const index size = begins[s + 1] - begins[s];
      for (index i = size * part / kParts; i < size * (part + 1) / kParts; ++i)
        *next++ = begins[s] + i;
    }
  return {order, segments.size};
}

// Calls f(run, n) for the values of a segment of runs_of.
template <class T, class F>
void for_each_run(const AdamWSlot<T>& slot, const Segment& segment, F&& f) {
  const auto run = [&](index value, index gradient) {
    return detail::AdamWRun<T>{slot.value.data + value, slot.gradient.data + gradient,
                               slot.m.data + value, slot.v.data + value};
  };
  const index C = slot.columns;
  if (C == 0) return f(run(segment.first, segment.first), segment.n);
  for (index i = segment.first; i < segment.first + segment.n; ++i)
    f(run(slot.rows[i].row * C, slot.rows[i].place * C), C);
}

// The sum of squares of a segment of a table, with the bits of the whole gradient. The values of a
// sum take turns in its lanes, and zeros change nothing: where rows are whole turns, those without
// gradient are left out; else they are written.
template <class T, class Squares>
double squares_of_rows(const AdamWSlot<T>& slot, const Segment& segment, Squares&& squares) {
  constexpr index kTurn = 32;
  const index C = slot.columns;
  const bool whole_turns = C % kTurn == 0;
  static_assert(kSegment % kTurn == 0);
  Scratch scratch;
  T* const values = scratch.allocate<T>(segment.n);
  if (!whole_turns) std::fill_n(values, segment.n, T{0});
  T* end = values;
  for (index i = segment.begin; i < segment.end; ++i) {
    const auto [row, place] = slot.rows[i];
    const index first = std::max(row * C, segment.first);
    const index last = std::min((row + 1) * C, segment.first + segment.n);
    if (!whole_turns) end = values + (first - segment.first);
    end = std::copy_n(slot.gradient.data + place * C + (first - row * C), last - first, end);
  }
  return squares(values, whole_turns ? end - values : segment.n);
}

}  // namespace

template <class T>
void adamw(const Context& ctx, std::span<const AdamWSlot<T>> slots, const AdamWStep& step) {
  constexpr double kCost = 8;  // operations for one element
  check_slots(slots);
  if (step.step < 1) fail(ErrorCode::kOptionValue, "adamw: step must be >= 1; it is {}", step.step);
  const auto common = detail::adamw_factors(step);
  Scratch scratch;
  const auto segments = runs_of(scratch, slots);
  const auto order = by_position(scratch, segments, slots.size());
  const auto update = FOVEA_DISPATCH(UpdateKernel)().of<T>();
  constexpr int kRead = 4, kWritten = 3;  // the gradient is only read
  const ProfileScope scope(ctx, pass_over_slots<T>("AdamW", slots, kRead + kWritten));
  ctx.for_ranges(segments.size, kCost * static_cast<double>(kSegment), [&](index begin, index end) {
    for (index i = begin; i < end; ++i) {
      const Segment& segment = segments[order[i]];
      const AdamWSlot<T>& slot = slots[segment.slot];
      const auto factors = detail::rounded<T>(common, slot.decay);
      for_each_run(slot, segment,
                   [&](const detail::AdamWRun<T>& run, index n) { update(factors, run, n); });
    }
  });
}

template <class T>
double global_norm(const Context& ctx, std::span<const AdamWSlot<T>> slots) {
  Scratch scratch;
  const auto segments = segments_of(scratch, slots);
  const auto order = by_position(scratch, segments, slots.size());
  double* const partial = scratch.allocate<double>(std::max<index>(segments.size, 1));
  const auto squares = FOVEA_DISPATCH(SquaresKernel)().of<T>();
  const ProfileScope scope(ctx, pass_over_slots<T>("gradient norm", slots, 1));
  ctx.for_ranges(segments.size, static_cast<double>(kSegment), [&](index begin, index end) {
    for (index i = begin; i < end; ++i) {
      const Segment& segment = segments[order[i]];
      const AdamWSlot<T>& slot = slots[segment.slot];
      partial[order[i]] = slot.columns > 0 ? squares_of_rows(slot, segment, squares)
                                           : squares(slot.gradient.data + segment.first, segment.n);
    }
  });
  double sum = 0;
  for (index i = 0; i < segments.size; ++i) sum += partial[i];
  return std::sqrt(sum);
}

double clip_scale(double norm, double limit) {
  return limit > 0 && norm > limit ? limit / norm : 1.0;
}

template void adamw(const Context&, std::span<const AdamWSlot<float>>, const AdamWStep&);
template void adamw(const Context&, std::span<const AdamWSlot<double>>, const AdamWStep&);
template double global_norm(const Context&, std::span<const AdamWSlot<float>>);
template double global_norm(const Context&, std::span<const AdamWSlot<double>>);

}  // namespace fovea
#endif  // HWY_ONCE
