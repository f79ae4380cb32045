// SPDX-License-Identifier: Apache-2.0
#include "fovea/kernel/dropout.h"

#include <algorithm>
#include <cmath>
#include <type_traits>

#ifndef FOVEA_KERNEL_DROPOUT_ROWS_
#define FOVEA_KERNEL_DROPOUT_ROWS_
namespace fovea {
namespace {

// The numbers of a mask that all rows share.
struct DropoutRule {
  PhiloxKey key;
  std::uint32_t last_dropped;  // words up to this one
  double factor;
};

}  // namespace
}  // namespace fovea
#endif

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "fovea/kernel/dropout.cc"
#include "hwy/foreach_target.h"  // compiles this file once for each instruction set
//
#include "fovea/simd/philox-inl.h"
#include "fovea/simd/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace fovea {
namespace HWY_NAMESPACE {
namespace {

// The lanes of T whose words are above `last`.
template <class T>
HWY_INLINE hn::Mask<Tag<T>> Kept(const std::uint32_t* words, std::uint32_t last) {
  const Tag<T> d;
  if constexpr (std::is_same_v<T, float>) {
    const hn::RebindToUnsigned<Tag<T>> du;
    return hn::RebindMask(d, hn::Gt(hn::LoadU(du, words), hn::Set(du, last)));
  } else {
    const hn::RebindToSigned<Tag<T>> di;
    const hn::Rebind<std::uint32_t, Tag<T>> du;
    const auto wide =
        hn::BitCast(di, hn::PromoteTo(hn::RebindToUnsigned<Tag<T>>(), hn::LoadU(du, words)));
    return hn::RebindMask(d, hn::Gt(wide, hn::Set(di, std::int64_t{last})));
  }
}

// y = base + f's kept elements; base null: 0. Works on 64 columns at a time, so that the words of
// the mask stay in L1. They need ten rounds of two multiplications, which take about as long as the
// memory traffic of the values.
template <class T>
void Apply(const DropoutRule& rule, SampleRow at, const T* base, const T* f, index C, T* y) {
  HWY_ALIGN std::uint32_t words[64];
  const PhiloxKey key = rule.key;
  const std::uint32_t last = rule.last_dropped;
  const T factor = static_cast<T>(rule.factor);
  const auto low = static_cast<std::uint32_t>(at.sample);
  const auto high = static_cast<std::uint32_t>(at.sample >> 32);
  for (index first = 0; first < C; first += 64) {
    Philox64(static_cast<std::uint32_t>(first / 4), at.row, low, high, key, words);
    const std::uint32_t* const drawn = words;
    ForEachLane<T>(HWY_MIN(C - first, index{64}), [=](auto lanes, index i) {
      const index c = first + i;
      const auto kept = Kept<T>(drawn + i, last);
      const auto v = hn::IfThenElseZero(kept, hn::Mul(lanes.Load(f + c), lanes.Set(factor)));
      lanes.Store(base == nullptr ? v : hn::Add(v, lanes.Load(base + c)), y + c);
    });
  }
}

auto ApplyKernel() { return PerPrecision{Apply<float>, Apply<double>}; }

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace fovea
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include "fovea/base/profile.h"
#include "fovea/kernel/elementwise.h"

namespace fovea {
namespace {

HWY_EXPORT(ApplyKernel);

DropoutRule rule_of(const char* operation, const DropoutMask& mask, index N) {
  if (!(mask.p >= 0 && mask.p < 1)) {
    fail(ErrorCode::kOptionValue, "{}: p must be in [0, 1); it is {}", operation, mask.p);
  }
  check_optional(operation, "rows", mask.rows, "N", N);
  // Words 0 .. ceil(p 2^32) - 1 mean dropped; p = 0 is handled apart.
  const double last = std::max(std::ceil(mask.p * 0x1p32) - 1, 0.0);
  return {philox_key(mask.key), static_cast<std::uint32_t>(last), 1 / (1 - mask.p)};
}

template <class T>
void apply(const Context& ctx, const DropoutMask& mask, const DropoutRule& rule, Rows<const T> base,
           Rows<const T> f, Rows<T> y) {
  constexpr double kCost = 4;  // operations for one element
  const auto apply_row = FOVEA_DISPATCH(ApplyKernel)().of<T>();
  const index C = f.columns;
  const int tensors = base.data == nullptr ? 2 : 3;
  const ProfileScope scope(ctx, pass_over<T>("dropout", f.rows, C, tensors));
  ctx.for_ranges(f.rows, kCost * static_cast<double>(C), [&](index begin, index end) {
    for (index n = begin; n < end; ++n) {
      const SampleRow at =
          mask.rows.empty() ? SampleRow{0, static_cast<std::uint32_t>(n)} : mask.rows[n];
      apply_row(rule, at, base.data == nullptr ? nullptr : base[n], f[n], C, y[n]);
    }
  });
}

}  // namespace

template <class T>
void dropout_forward(const Context& ctx, const DropoutMask& mask, InRows<T> x, Rows<T> y) {
  check_rows("dropout", "y", y, x.rows, x.columns);
  const DropoutRule rule = rule_of("dropout", mask, x.rows);
  if (mask.p == 0) return copy_rows(ctx, x, y);
  apply<T>(ctx, mask, rule, {}, x, y);
}

template <class T>
void dropout_backward(const Context& ctx, const DropoutMask& mask, InRows<T> dy, Rows<T> dx) {
  check_rows("dropout_backward", "dx", dx, dy.rows, dy.columns);
  dropout_forward(ctx, mask, dy, dx);
}

template <class T>
void dropout_add_forward(const Context& ctx, const DropoutMask& mask, InRows<T> x, InRows<T> f,
                         Rows<T> y) {
  check_rows("dropout_add", "f", f, x.rows, x.columns);
  check_rows("dropout_add", "y", y, x.rows, x.columns);
  const DropoutRule rule = rule_of("dropout_add", mask, x.rows);
  if (mask.p == 0) return add_forward(ctx, x, f, y);
  apply<T>(ctx, mask, rule, x, f, y);
}

template void dropout_forward(const Context&, const DropoutMask&, Rows<const float>, Rows<float>);
template void dropout_forward(const Context&, const DropoutMask&, Rows<const double>, Rows<double>);
template void dropout_backward(const Context&, const DropoutMask&, Rows<const float>, Rows<float>);
template void dropout_backward(const Context&, const DropoutMask&, Rows<const double>,
                               Rows<double>);
template void dropout_add_forward(const Context&, const DropoutMask&, Rows<const float>,
                                  Rows<const float>, Rows<float>);
template void dropout_add_forward(const Context&, const DropoutMask&, Rows<const double>,
                                  Rows<const double>, Rows<double>);

}  // namespace fovea
#endif  // HWY_ONCE
