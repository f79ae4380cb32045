// SPDX-License-Identifier: Apache-2.0
#include "fovea/kernel/adamw.h"

#include <algorithm>
#include <cmath>
#include <type_traits>

#include "fovea/base/memory.h"

#ifndef FOVEA_KERNEL_ADAMW_SPANS_
#define FOVEA_KERNEL_ADAMW_SPANS_
namespace fovea {
namespace {

// The numbers of one step for one slot, each rounded once.
struct AdamWFactors {
  double gradient_scale;
  double rate1;  // 1 - beta1: m += rate1 (g - m)
  double rate2;  // 1 - beta2
  double root;   // 1 / sqrt(1 - beta2^step)
  double epsilon;
  double step_size;  // lr / (1 - beta1^step)
  double shrink;     // lr times this slot's weight decay
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

// Memory bandwidth limits the speed: value, gradient, m and v are read once; value, m and v are
// written once. The moments are computed as m += (1 - beta) (g - m), because float rounds beta: 1 -
// 0.999f is off by a relative 1e-5.
template <class T>
void Update(const AdamWFactors& f, const AdamWSlot<T>& slot, index first, index n) {
  T* const value = slot.value.data + first;
  const T* const gradient = slot.gradient.data + first;
  T* const m = slot.m.data + first;
  T* const v = slot.v.data + first;
  const T gradient_scale = static_cast<T>(f.gradient_scale), rate1 = static_cast<T>(f.rate1),
          rate2 = static_cast<T>(f.rate2), root = static_cast<T>(f.root),
          epsilon = static_cast<T>(f.epsilon), step_size = static_cast<T>(f.step_size),
          shrink = static_cast<T>(f.shrink);
  ForEachLane<T>(n, [=](auto lanes, index i) {
    const auto g = hn::Mul(lanes.Load(gradient + i), lanes.Set(gradient_scale));
    const auto old_m = lanes.Load(m + i), old_v = lanes.Load(v + i), x = lanes.Load(value + i);
    const auto new_m = hn::MulAdd(hn::Sub(g, old_m), lanes.Set(rate1), old_m);
    const auto new_v = hn::MulAdd(hn::MulSub(g, g, old_v), lanes.Set(rate2), old_v);
    const auto divisor = hn::MulAdd(hn::Sqrt(new_v), lanes.Set(root), lanes.Set(epsilon));
    const auto adam = hn::Div(hn::Mul(new_m, lanes.Set(step_size)), divisor);
    lanes.Store(hn::Sub(x, hn::MulAdd(x, lanes.Set(shrink), adam)), value + i);
    lanes.Store(new_m, m + i);
    lanes.Store(new_v, v + i);
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

struct Segment {
  std::size_t slot;
  index first;
  index n;
};

template <class T>
Vec<const Segment> segments_of(Scratch& scratch, std::span<const AdamWSlot<T>> slots) {
  index count = 0;
  for (const AdamWSlot<T>& slot : slots) count += (slot.gradient.size + kSegment - 1) / kSegment;
  Segment* const segments = scratch.allocate<Segment>(std::max<index>(count, 1));
  Segment* next = segments;
  for (std::size_t s = 0; s < slots.size(); ++s)
    for (index first = 0; first < slots[s].gradient.size; first += kSegment)
      *next++ = {s, first, std::min(kSegment, slots[s].gradient.size - first)};
  return {segments, count};
}

template <class T>
index values_of(std::span<const AdamWSlot<T>> slots) {
  index values = 0;
  for (const AdamWSlot<T>& slot : slots) values += slot.gradient.size;
  return values;
}

template <class T>
void check_slots(std::span<const AdamWSlot<T>> slots) {
  for (std::size_t s = 0; s < slots.size(); ++s) {
    const auto& [value, gradient, m, v, decay] = slots[s];
    check(gradient.size == value.size && m.size == value.size && v.size == value.size,
          "adamw: value, gradient, m and v of slot {} must have one size; they have {}, {}, {}, {}",
          s, value.size, gradient.size, m.size, v.size);
  }
}

}  // namespace

template <class T>
void adamw(const Context& ctx, std::span<const AdamWSlot<T>> slots, const AdamWStep& step) {
  constexpr double kCost = 8;  // operations for one element
  check_slots(slots);
  if (step.step < 1) fail(ErrorCode::kOptionValue, "adamw: step must be >= 1; it is {}", step.step);
  const AdamWOptions& o = step.options;
  const double t = static_cast<double>(step.step);
  const AdamWFactors common{.gradient_scale = step.gradient_scale,
                            .rate1 = 1 - o.beta1,
                            .rate2 = 1 - o.beta2,
                            .root = 1 / std::sqrt(1 - std::pow(o.beta2, t)),
                            .epsilon = o.epsilon,
                            .step_size = o.lr / (1 - std::pow(o.beta1, t)),
                            .shrink = o.lr * o.weight_decay};
  Scratch scratch;
  const auto segments = segments_of(scratch, slots);
  const auto update = FOVEA_DISPATCH(UpdateKernel)().of<T>();
  constexpr int kRead = 4, kWritten = 3;  // the gradient is only read
  const ProfileScope scope(ctx, pass_over<T>("AdamW", values_of(slots), 1, kRead + kWritten));
  ctx.for_ranges(segments.size, kCost * static_cast<double>(kSegment), [&](index begin, index end) {
    for (index i = begin; i < end; ++i) {
      const auto& [s, first, n] = segments[i];
      AdamWFactors factors = common;
      factors.shrink *= slots[s].decay;
      update(factors, slots[s], first, n);
    }
  });
}

template <class T>
double global_norm(const Context& ctx, std::span<const AdamWSlot<T>> slots) {
  Scratch scratch;
  const auto segments = segments_of(scratch, slots);
  double* const partial = scratch.allocate<double>(std::max<index>(segments.size, 1));
  const auto squares = FOVEA_DISPATCH(SquaresKernel)().of<T>();
  const ProfileScope scope(ctx, pass_over<T>("gradient norm", values_of(slots), 1, 1));
  ctx.for_ranges(segments.size, static_cast<double>(kSegment), [&](index begin, index end) {
    for (index i = begin; i < end; ++i) {
      const auto& [s, first, n] = segments[i];
      partial[i] = squares(slots[s].gradient.data + first, n);
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
