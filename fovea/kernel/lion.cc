// SPDX-License-Identifier: Apache-2.0
#include "fovea/kernel/lion.h"

#include "fovea/base/check.h"
#include "fovea/base/memory.h"
#include "fovea/kernel/segments.h"

#ifndef FOVEA_KERNEL_LION_TYPES_
#define FOVEA_KERNEL_LION_TYPES_
namespace fovea {
namespace detail {

/// Each rounded once.
template <class T>
struct LionFactors {
  T gradient_scale;
  T rate1;  // 1 - beta1: c = m + rate1 (g - m)
  T rate2;  // 1 - beta2
  T lr;
  T shrink;  // lr times the weight decay of the slot
};

template <class T>
struct LionRun {
  T* value;
  const T* gradient;
  T* m;
};

template <class T>
LionFactors<T> lion_factors(const AdamWStep& step, double decay) {
  const AdamWOptions& o = step.options;
  return {.gradient_scale = static_cast<T>(step.gradient_scale),
          .rate1 = static_cast<T>(1 - o.beta1),
          .rate2 = static_cast<T>(1 - o.beta2),
          .lr = static_cast<T>(o.lr),
          .shrink = static_cast<T>(o.lr * o.weight_decay * decay)};
}

}  // namespace detail
}  // namespace fovea
#endif

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "fovea/kernel/lion.cc"
#include "hwy/foreach_target.h"  // compiles this file once for each instruction set
//
#include "fovea/simd/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace fovea {
namespace HWY_NAMESPACE {
namespace {

// Memory bandwidth limits the speed: value, gradient and m are read once, value and m written.
template <class T>
void LionUpdate(const detail::LionFactors<T>& f, const detail::LionRun<T>& run, index n) {
  ForEachLane<T>(n, [f, run](auto lanes, index i) {
    const auto g = hn::Mul(lanes.Load(run.gradient + i), lanes.Set(f.gradient_scale));
    const auto x = lanes.Load(run.value + i), m = lanes.Load(run.m + i);
    const auto change = hn::Sub(g, m), zero = hn::Zero(Tag<T>());
    const auto c = hn::MulAdd(change, lanes.Set(f.rate1), m);
    const auto sign = hn::IfThenElse(hn::Eq(c, zero), zero, hn::CopySign(lanes.Set(f.lr), c));
    lanes.Store(hn::Sub(x, hn::MulAdd(x, lanes.Set(f.shrink), sign)), run.value + i);
    lanes.Store(hn::MulAdd(change, lanes.Set(f.rate2), m), run.m + i);
  });
}

auto LionUpdateKernel() { return PerPrecision{LionUpdate<float>, LionUpdate<double>}; }

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace fovea
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include "fovea/base/profile.h"
namespace fovea {
namespace {

HWY_EXPORT(LionUpdateKernel);

template <class T>
index check_lion_slots(std::span<const LionSlot<T>> slots) {
  index all = 0;
  for (std::size_t s = 0; s < slots.size(); ++s) {
    const LionSlot<T>& slot = slots[s];
    check(slot.gradient.size == slot.value.size && slot.m.size == slot.value.size,
          "lion: value, gradient and m of slot {} must have one size; they have {}, {}, {}", s,
          slot.value.size, slot.gradient.size, slot.m.size);
    all += slot.value.size;
  }
  return all;
}

}  // namespace

template <class T>
void lion(const Context& ctx, std::span<const LionSlot<T>> slots, const AdamWStep& step) {
  constexpr double kCost = 5;  // operations for one element
  constexpr index kSegment = 4096;
  constexpr int kReadAndWritten = 5;
  const index all = check_lion_slots(slots);
  Scratch scratch;
  const ArraySegments segments(scratch, std::ssize(slots), kSegment, [&](index s) {
    return slots[static_cast<std::size_t>(s)].value.size;
  });
  const auto update = FOVEA_DISPATCH(LionUpdateKernel)().of<T>();
  const ProfileScope scope(ctx, pass_over<T>("Lion", all, 1, kReadAndWritten));
  ctx.for_ranges(segments.count(), kCost * kSegment, [&](index begin, index end) {
    for (index i = begin; i < end; ++i) {
      const auto [number, first, n] = segments[i];
      const LionSlot<T>& slot = slots[static_cast<std::size_t>(number)];
      update(detail::lion_factors<T>(step, slot.decay),
             {slot.value.data + first, slot.gradient.data + first, slot.m.data + first}, n);
    }
  });
}

template void lion(const Context&, std::span<const LionSlot<float>>, const AdamWStep&);
template void lion(const Context&, std::span<const LionSlot<double>>, const AdamWStep&);

}  // namespace fovea
#endif  // HWY_ONCE
