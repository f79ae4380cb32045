// SPDX-License-Identifier: Apache-2.0
#include "fovea/kernel/adamw.h"

#include <algorithm>
#include <cmath>
#include <type_traits>

#include "fovea/base/memory.h"
#include "fovea/kernel/adamw_values.h"
#include "fovea/simd/prefetch.h"

#ifndef FOVEA_KERNEL_ADAMW_TYPES_
#define FOVEA_KERNEL_ADAMW_TYPES_
namespace fovea {
namespace detail {

/// Each rounded once.
template <class T>
struct AdamWFactors {
  T gradient_scale;
  T rate1;  // 1 - beta1: m += rate1 (g - m)
  T rate2;  // 1 - beta2
  T root;   // 1 / sqrt(1 - beta2^step)
  T epsilon;
  T step_size;  // lr / (1 - beta1^step)
  T shrink;     // lr times the weight decay of the slot
};

/// Values, with their gradient and moments.
template <class T>
struct AdamWRun {
  T* value;
  const T* gradient;
  T *m, *v;
};

inline AdamWFactors<double> adamw_factors(const AdamWStep& step) {
  const AdamWOptions& o = step.options;
  const auto t = static_cast<double>(step.step);
  return {.gradient_scale = step.gradient_scale,
          .rate1 = 1 - o.beta1,
          .rate2 = 1 - o.beta2,
          .root = 1 / std::sqrt(1 - std::pow(o.beta2, t)),
          .epsilon = o.epsilon,
          .step_size = o.lr / (1 - std::pow(o.beta1, t)),
          .shrink = o.lr * o.weight_decay};
}

/// For a slot: `decay` multiplies the weight decay.
template <class T>
AdamWFactors<T> rounded(const AdamWFactors<double>& f, double decay) {
  return {.gradient_scale = static_cast<T>(f.gradient_scale),
          .rate1 = static_cast<T>(f.rate1),
          .rate2 = static_cast<T>(f.rate2),
          .root = static_cast<T>(f.root),
          .epsilon = static_cast<T>(f.epsilon),
          .step_size = static_cast<T>(f.step_size),
          .shrink = static_cast<T>(f.shrink * decay)};
}

}  // namespace detail

namespace {

template <class T>
struct RowToCatchUp {
  T *value, *m, *v;
  index columns, made;
};

}  // namespace
}  // namespace fovea
#endif

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "fovea/kernel/adamw.cc"
#include "hwy/foreach_target.h"  // compiles this file once for each instruction set
//
#include "fovea/simd/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace fovea {
namespace HWY_NAMESPACE {
namespace {

/// The factors of one update (detail::AdamWFactors), each in all lanes.
template <class T>
struct AdamWVectors {
  Vector<T> rate1, rate2, root, epsilon, step_size, shrink;
};

/// One update of x with the gradient g. The moments are computed as m += (1 - beta) (g - m),
/// because float rounds beta: 1 - 0.999f is off by a relative 1e-5.
template <class T>
HWY_INLINE void AdamWUpdate(Vector<T> g, const AdamWVectors<T>& f, Vector<T>& x, Vector<T>& m,
                            Vector<T>& v) {
  m = hn::MulAdd(hn::Sub(g, m), f.rate1, m);
  v = hn::MulAdd(hn::MulSub(g, g, v), f.rate2, v);
  const auto divisor = hn::MulAdd(hn::Sqrt(v), f.root, f.epsilon);
  const auto adam = hn::Div(hn::Mul(m, f.step_size), divisor);
  x = hn::Sub(x, hn::MulAdd(x, f.shrink, adam));
}

/// The moment after an update without a gradient: as above with g = 0.
template <class T>
HWY_INLINE Vector<T> AdamWDecay(Vector<T> moment, Vector<T> rate) {
  return hn::MulAdd(hn::Sub(hn::Zero(Tag<T>()), moment), rate, moment);
}

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

template <class T>
HWY_INLINE bool SameBits(Vector<T> a, Vector<T> b) {
  const hn::RebindToUnsigned<Tag<T>> bits;
  return hn::AllTrue(bits, hn::Eq(hn::BitCast(bits, a), hn::BitCast(bits, b)));
}

// Some vectors of a row in registers, from value i on. An update takes a root and a division; two
// things spare most of them, and neither changes a bit:
//
// - Over a block of updates |m| and v only fall, so no update's change of x by Adam exceeds
//   bound = |m| (largest step size) / (sqrt(v at the end) (smallest root) + epsilon): each of these
//   operations, rounded, is monotonic. Where x becomes the same with +bound and with -bound, it
//   does so with the change itself, and the block is left with the decay of m, v and x. About 150
//   updates after its last gradient, a row is there.
// - A moment that one decay does not change stays as it is: 0, or a few units of the smallest
//   number, with which some processors compute slowly.
template <class T, int kVectors, class LanesOf>
class Registers {
 public:
  using History = AdamWHistory<T>;

  Registers(const LanesOf& lanes, const RowToCatchUp<T>& row, index i) : lanes_(lanes) {
    for (int k = 0; k < kVectors; ++k) {
      x_[k] = lanes_.Load(row.value + i + k * kLanes<T>);
      m_[k] = lanes_.Load(row.m + i + k * kLanes<T>);
      v_[k] = lanes_.Load(row.v + i + k * kLanes<T>);
    }
  }
  void Store(const RowToCatchUp<T>& row, index i) const {
    for (int k = 0; k < kVectors; ++k) {
      lanes_.Store(x_[k], row.value + i + k * kLanes<T>);
      lanes_.Store(m_[k], row.m + i + k * kLanes<T>);
      lanes_.Store(v_[k], row.v + i + k * kLanes<T>);
    }
  }

  // Updates [begin, end) of the history.
  HWY_INLINE void Make(const History& history, index begin, index end) {
    const auto* const updates = history.updates().data;
    while (begin < end) {
      const index block = begin / History::kBlock;
      const index next = std::min((block + 1) * History::kBlock, end), n = next - begin;
      if (n < kWorthATry || !MakeSettled(history, updates + begin, n, history.blocks()[block])) {
        MakeAll(history, updates + begin, n);
      }
      begin = next;
    }
  }

 private:
  using Update = typename History::Update;
  static constexpr index kWorthATry = 4;  // updates; a try takes about as long as one

  HWY_INLINE void MakeAll(const History& history, const Update* updates, index n) {
    const auto zero = hn::Zero(Tag<T>());
    const auto rate1 = lanes_.Set(history.rate1()), rate2 = lanes_.Set(history.rate2()),
               epsilon = lanes_.Set(history.epsilon());
    for (index u = 0; u < n; ++u) {
      const AdamWVectors<T> factors{rate1,
                                    rate2,
                                    lanes_.Set(updates[u].root),
                                    epsilon,
                                    lanes_.Set(updates[u].step_size),
                                    lanes_.Set(updates[u].shrink)};
      for (int k = 0; k < kVectors; ++k) AdamWUpdate<T>(zero, factors, x_[k], m_[k], v_[k]);
    }
  }

  // n updates of a block without roots and divisions; false, and nothing is changed, where they
  // need them.
  HWY_INLINE bool MakeSettled(const History& history, const Update* updates, index n,
                              const typename History::Block& block) {
    Vector<T> x[kVectors], m[kVectors], v[kVectors], bound[kVectors];
    for (int k = 0; k < kVectors; ++k) x[k] = x_[k], m[k] = m_[k], v[k] = v_[k];
    Decay(v, lanes_.Set(history.rate2()), n);
    for (int k = 0; k < kVectors; ++k) {
      const auto divisor =
          hn::MulAdd(hn::Sqrt(v[k]), lanes_.Set(block.root), lanes_.Set(history.epsilon()));
      bound[k] = hn::Div(hn::Mul(hn::Abs(m[k]), lanes_.Set(block.step_size)), divisor);
    }
    // Without weight decay x - bound = x + bound is x itself, also in all further updates.
    const index tried = block.decays ? n : 1;
    for (index u = 0; u < tried; ++u) {
      const auto shrink = lanes_.Set(updates[u].shrink);
      bool same = true;
      for (int k = 0; k < kVectors; ++k) {
        const auto low = hn::Sub(x[k], hn::MulAdd(x[k], shrink, bound[k]));
        const auto high = hn::Sub(x[k], hn::MulAdd(x[k], shrink, hn::Neg(bound[k])));
        same &= SameBits<T>(low, high);
        x[k] = low;
      }
      if (!same) return false;
    }
    Decay(m, lanes_.Set(history.rate1()), n);
    for (int k = 0; k < kVectors; ++k) x_[k] = x[k], m_[k] = m[k], v_[k] = v[k];
    return true;
  }

  // Lets moments decay as n updates without a gradient do.
  static HWY_INLINE void Decay(Vector<T>* moments, Vector<T> rate, index n) {
    bool same = true;
    for (int k = 0; k < kVectors; ++k)
      same &= SameBits<T>(AdamWDecay<T>(moments[k], rate), moments[k]);
    if (same) return;
    for (index u = 0; u < n; ++u)
      for (int k = 0; k < kVectors; ++k) moments[k] = AdamWDecay<T>(moments[k], rate);
  }

  const LanesOf lanes_;
  Vector<T> x_[kVectors], m_[kVectors], v_[kVectors];
};

template <class T>
void CatchUpRow(const RowToCatchUp<T>& row, const AdamWHistory<T>& history) {
  constexpr int kVectors = 4;
  const auto part = [&]<int kCount>(std::integral_constant<int, kCount>, auto lanes, index i) {
    Registers<T, kCount, decltype(lanes)> registers(lanes, row, i);
    registers.Make(history, row.made, history.size());
    registers.Store(row, i);
  };
  index i = 0;
  for (; i + kVectors * kLanes<T> <= row.columns; i += kVectors * kLanes<T>)
    part(std::integral_constant<int, kVectors>{}, FullLanes<T>{}, i);
  ForEachLane<T>(row.columns - i, [&](auto lanes, index j) {
    part(std::integral_constant<int, 1>{}, lanes, i + j);
  });
}

auto CatchUpRowKernel() { return PerPrecision{CatchUpRow<float>, CatchUpRow<double>}; }

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

template <class T>
void adamw_values(const AdamWSlot<T>& slot, const AdamWStep& step) {
  const auto update = FOVEA_DISPATCH(UpdateKernel)().of<T>();
  update(detail::rounded<T>(detail::adamw_factors(step), slot.decay),
         {slot.value.data, slot.gradient.data, slot.m.data, slot.v.data}, slot.value.size);
}

template void adamw(const Context&, std::span<const AdamWSlot<float>>, const AdamWStep&);
template void adamw(const Context&, std::span<const AdamWSlot<double>>, const AdamWStep&);
template void adamw_values(const AdamWSlot<float>&, const AdamWStep&);
template void adamw_values(const AdamWSlot<double>&, const AdamWStep&);
template double global_norm(const Context&, std::span<const AdamWSlot<float>>);
template double global_norm(const Context&, std::span<const AdamWSlot<double>>);

namespace {

HWY_EXPORT(CatchUpRowKernel);

template <class T>
void prefetch_row(const AdamWTable<T>& table, index row) {
  for (const Rows<T>* part : {&table.value, &table.m, &table.v}) detail::prefetch_row(*part, row);
}

}  // namespace

template <class T>
bool AdamWHistory<T>::takes(const AdamWStep& step) const {
  const auto f = detail::rounded<T>(detail::adamw_factors(step), 1);
  return updates_.empty() || (f.rate1 == rate1_ && f.rate2 == rate2_ && f.epsilon == epsilon_);
}

template <class T>
void AdamWHistory<T>::add(const AdamWStep& step, double decay) {
  if (!takes(step)) {
    fail(ErrorCode::kOptionValue, "adamw: the betas and the epsilon of a history cannot change");
  }
  const auto f = detail::rounded<T>(detail::adamw_factors(step), decay);
  rate1_ = f.rate1;
  rate2_ = f.rate2;
  epsilon_ = f.epsilon;
  updates_.push_back({f.step_size, f.root, f.shrink});
  if (size() % kBlock == 1) blocks_.push_back({0, f.root, false});
  Block& block = blocks_.back();
  block.step_size = std::max(block.step_size, std::abs(f.step_size));
  block.root = std::min(block.root, f.root);
  block.decays |= f.shrink != 0;
}

template <class T>
void adamw_catch_up(const Context& ctx, const AdamWTable<T>& table, const AdamWHistory<T>& history,
                    Vec<const RowBehind> rows) {
  constexpr double kCost = 8;  // operations for one element and update
  constexpr index kAhead = 4;
  const index V = table.value.rows, C = table.value.columns;
  check_rows("adamw_catch_up", "m", table.m, V, C);
  check_rows("adamw_catch_up", "v", table.v, V, C);
  index missed = 0;
  for (const auto& [row, made] : rows) {
    check(row >= 0 && row < V && made >= 0 && made <= history.size(),
          "adamw_catch_up: row {} with {} of {} updates; the table has rows 0 to {}", row, made,
          history.size(), V - 1);
    missed += history.size() - made;
  }
  if (rows.empty()) return;
  const auto catch_up = FOVEA_DISPATCH(CatchUpRowKernel)().of<T>();
  const double of_row = static_cast<double>(missed) / static_cast<double>(rows.size);
  Work work = pass_over<T>("AdamW of missed updates", V, C, 6);  // the same in each update
  work.bytes *= static_cast<double>(rows.size) / static_cast<double>(V);
  const ProfileScope scope(ctx, work);
  const double cost = kCost * static_cast<double>(C) * (1 + of_row);
  ctx.for_ranges(rows.size, cost, [&](index begin, index end) {
    for (index i = begin; i < end; ++i) {
      if (i + kAhead < end) prefetch_row(table, rows[i + kAhead].row);
      const auto [row, made] = rows[i];
      catch_up({table.value[row], table.m[row], table.v[row], C, made}, history);
    }
  });
}

template class AdamWHistory<float>;
template class AdamWHistory<double>;
template void adamw_catch_up(const Context&, const AdamWTable<float>&, const AdamWHistory<float>&,
                             Vec<const RowBehind>);
template void adamw_catch_up(const Context&, const AdamWTable<double>&, const AdamWHistory<double>&,
                             Vec<const RowBehind>);

}  // namespace fovea
#endif  // HWY_ONCE
