// SPDX-License-Identifier: Apache-2.0
#include "fovea/kernel/round.h"

#include "fovea/kernel/spans.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "fovea/kernel/round.cc"
#include "hwy/foreach_target.h"  // compiles this file once for each instruction set
//
#include "fovea/simd/round-inl.h"
#include "fovea/simd/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace fovea {
namespace HWY_NAMESPACE {
namespace {

// A BFloat16 is one uint16_t.
using HalfTag = hn::Rebind<std::uint16_t, Tag<float>>;

HWY_INLINE Vector<float> Widened(const BFloat16* x) {
  constexpr hn::RebindToUnsigned<Tag<float>> u;
  const auto halves = hn::LoadU(HalfTag(), &x->bits);
  return hn::BitCast(Tag<float>(), hn::ShiftLeft<16>(hn::PromoteTo(u, halves)));
}

void RoundSpan(const float* x, index n, BFloat16* y) {
  constexpr index kN = kLanes<float>;
  constexpr hn::RebindToUnsigned<Tag<float>> u;
  constexpr hn::RebindToSigned<Tag<float>> s;
  index i = 0;
  for (; i + kN <= n; i += kN) {
    const auto rounded = hn::BitCast(u, RoundToBFloat16(hn::LoadU(Tag<float>(), x + i)));
    const auto halves = hn::DemoteTo(HalfTag(), hn::BitCast(s, hn::ShiftRight<16>(rounded)));
    hn::StoreU(halves, HalfTag(), &y[i].bits);
  }
  for (; i < n; ++i) y[i] = to_bfloat16(x[i]);
}

void WidenSpan(const BFloat16* x, index n, float* y) {
  constexpr index kN = kLanes<float>;
  index i = 0;
  for (; i + kN <= n; i += kN) hn::StoreU(Widened(x + i), Tag<float>(), y + i);
  for (; i < n; ++i) y[i] = to_float(x[i]);
}

void AddWidenedSpan(const BFloat16* x, index n, float* y) {
  constexpr index kN = kLanes<float>;
  constexpr Tag<float> d;
  index i = 0;
  for (; i + kN <= n; i += kN) hn::StoreU(hn::Add(hn::LoadU(d, y + i), Widened(x + i)), d, y + i);
  for (; i < n; ++i) y[i] += to_float(x[i]);
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace fovea
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include "fovea/base/profile.h"
namespace fovea {
namespace {

HWY_EXPORT(RoundSpan);
HWY_EXPORT(WidenSpan);
HWY_EXPORT(AddWidenedSpan);

// Calls `span` for all of x and y.
template <class From, class To>
void for_all(const Context& ctx, const char* what, Rows<const From> x, Rows<To> y,
             void (*span)(const From*, index, To*)) {
  check_rows(what, "y", y, x.rows, x.columns);
  const ProfileScope scope(ctx, pass_over<float>(what, x.rows, x.columns, 2));
  constexpr double kCost = 1;
  for_spans(ctx, x.rows, x.columns, layout_of(x, y), kCost,
            [=](index r, index c, index n) { span(x[r] + c, n, y[r] + c); });
}

}  // namespace

void round_rows(const Context& ctx, Rows<const float> x, Rows<BFloat16> y) {
  for_all(ctx, "round", x, y, FOVEA_DISPATCH(RoundSpan));
}

void widen_rows(const Context& ctx, Rows<const BFloat16> x, Rows<float> y) {
  for_all(ctx, "widen", x, y, FOVEA_DISPATCH(WidenSpan));
}

void accumulate(const Context& ctx, Rows<const BFloat16> x, Rows<float> y) {
  for_all(ctx, "accumulate", x, y, FOVEA_DISPATCH(AddWidenedSpan));
}

}  // namespace fovea
#endif  // HWY_ONCE
