// SPDX-License-Identifier: Apache-2.0
// Vectors of numbers m 2^e whose exponents e are numbers of their own (crf_chain.h says why).
// m >= 0; e is a whole number of the type of m.
#if defined(FOVEA_KERNEL_SCALED_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef FOVEA_KERNEL_SCALED_INL_H_
#undef FOVEA_KERNEL_SCALED_INL_H_
#else
#define FOVEA_KERNEL_SCALED_INL_H_
#endif

#include <cmath>
#include <limits>

#include "fovea/kernel/crf_chain.h"
#include "fovea/simd/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace fovea::detail {
namespace HWY_NAMESPACE {

template <class T>
inline constexpr bool kIsFloat = std::is_same_v<T, float>;
template <class T>
inline constexpr int kFractionBits = kIsFloat<T> ? 23 : 52;
template <class T>
inline constexpr T kExponentBias = kIsFloat<T> ? 127 : 1023;
/// A whole number below it, added to it, stands in its last bits.
template <class T>
inline constexpr T kWholeBits = kIsFloat<T> ? T{0x1p23} : T{0x1p52};
/// Numbers with a lower exponent are joined to 0.
template <class T>
inline constexpr T kTinyExponent = kIsFloat<T> ? -120 : -1000;

template <class T>
struct ScaledVector {
  Vector<T> m, e;
};

template <class T>
HWY_INLINE ScaledVector<T> LoadScaled(Scaled<const T> from, index i) {
  return {hn::LoadU(Tag<T>(), from.m + i), hn::LoadU(Tag<T>(), from.e + i)};
}
template <class T>
HWY_INLINE void StoreScaled(const ScaledVector<T>& v, Scaled<T> to, index i) {
  hn::StoreU(v.m, Tag<T>(), to.m + i);
  hn::StoreU(v.e, Tag<T>(), to.e + i);
}

/// The product, but for the range of m.
template <class T>
HWY_INLINE ScaledVector<T> Times(const ScaledVector<T>& a, const ScaledVector<T>& b) {
  return {hn::Mul(a.m, b.m), hn::Add(a.e, b.e)};
}

/// m 2^e as one number, for e up to 64; 0 where e is below kTinyExponent.
template <class T>
HWY_INLINE Vector<T> Join(const ScaledVector<T>& v) {
  const Tag<T> d;
  const hn::RebindToUnsigned<Tag<T>> du;
  const auto tiny = hn::Set(d, kTinyExponent<T>);
  const auto e = hn::Max(v.e, tiny);
  const auto bits = hn::BitCast(du, hn::Add(e, hn::Set(d, kWholeBits<T> + kExponentBias<T>)));
  const auto power = hn::BitCast(d, hn::ShiftLeft<kFractionBits<T>>(bits));
  return hn::IfThenElseZero(hn::Ge(v.e, tiny), hn::Mul(v.m, power));
}

/// x >= 0, not denormal, with m in [1, 2). NaN and infinity stay in m.
template <class T>
HWY_INLINE ScaledVector<T> Part(Vector<T> x) {
  const Tag<T> d;
  const hn::RebindToUnsigned<Tag<T>> du;
  const auto bits = hn::BitCast(du, x);
  const auto whole = hn::BitCast(du, hn::Set(d, kWholeBits<T>)),
             one = hn::BitCast(du, hn::Set(d, T{1}));
  const auto fraction = hn::Sub(hn::BitCast(du, hn::Set(d, T{2})), hn::Set(du, 1));
  const auto mask = hn::AndNot(one, fraction);
  const auto exponent = hn::BitCast(d, hn::Or(hn::ShiftRight<kFractionBits<T>>(bits), whole));
  const auto e = hn::Sub(exponent, hn::Set(d, kWholeBits<T> + kExponentBias<T>));
  const auto m = hn::BitCast(d, hn::Or(hn::And(bits, mask), one));
  const auto zero = hn::Zero(d);
  const auto is_zero = hn::Eq(x, zero);
  const auto is_plain =
      hn::And(hn::Gt(x, zero), hn::Le(x, hn::Set(d, std::numeric_limits<T>::max())));
  const auto other = hn::IfThenElse(is_zero, hn::Set(d, kNoExponent<T>), zero);
  return {hn::IfThenElse(is_plain, m, x), hn::IfThenElse(is_plain, e, other)};
}

/// The sum of term(k) for k = 0 ... n - 1, without loss: all are brought to the largest exponent.
template <class T, class Term>
ScaledVector<T> ExactSum(index n, Term&& term) {
  const Tag<T> d;
  auto most = hn::Set(d, std::numeric_limits<T>::lowest());
  for (index k = 0; k < n; ++k) most = hn::Max(most, term(k).e);
  auto sum = hn::Zero(d);
  for (index k = 0; k < n; ++k) {
    auto x = term(k);
    x.e = hn::Sub(x.e, most);
    sum = hn::Add(sum, Join<T>(x));
  }
  auto y = Part<T>(sum);
  y.e = hn::Add(y.e, most);
  return y;
}

/// e^x with m from .7 to 1.5, within 1.05 ulp for |x| < 350; 0 for -infinity, and NaN for NaN and
/// infinity.
template <class T>
HWY_INLINE ScaledVector<T> ExpInParts(Vector<T> x) {
  const Tag<T> d;
  ScaledVector<T> y;
  const auto scale = hn::Set(d, kLog2E<T>);
  // Numbers beyond this bound exceed every precision; it keeps sums of exponents in range.
  constexpr T kMost = static_cast<T>(1e30);
  const auto bound = hn::Set(d, kMost), zero = hn::Zero(d);
  const auto t = hn::IfThenElse(hn::Gt(x, bound), bound,
                                hn::IfThenElse(hn::Lt(x, hn::Neg(bound)), hn::Neg(bound), x));
  y.e = hn::Round(hn::Mul(t, scale));
  // ln 2 in two parts, as in Exp.
  if constexpr (kIsFloat<T>) {
    auto r = hn::NegMulAdd(y.e, hn::Set(d, 0x1.62e4p-1f), t);
    r = ClampKeepingNaN(d, hn::NegMulAdd(y.e, hn::Set(d, 1.42860677e-6f), r), -.4f, .4f);
    const auto q =
        Polynomial(d, r, 0.49999994f, 0.166665196f, 0.0416683927f, 0.00836878084f, 0.00138144672f);
    y.m = hn::Add(hn::MulAdd(q, hn::Mul(r, r), r), hn::Set(d, 1.0f));
  } else {
    auto r = hn::NegMulAdd(y.e, hn::Set(d, 0x1.62e42feep-1), t);
    r = hn::NegMulAdd(y.e, hn::Set(d, 0x1.a39ef35793c76p-33), r);
    y.m = PerLane(d, r,
                  [](double v) { return std::exp(std::isnan(v) ? v : std::clamp(v, -.4, .4)); });
  }
  const auto is_none = hn::Eq(x, hn::Set(d, -std::numeric_limits<T>::infinity()));
  const auto is_number = hn::Lt(x, hn::Set(d, std::numeric_limits<T>::infinity()));
  const auto nan = hn::Set(d, std::numeric_limits<T>::quiet_NaN());
  y.e = hn::IfThenElse(is_none, hn::Set(d, kNoExponent<T>), hn::IfThenElse(is_number, y.e, zero));
  y.m = hn::IfThenElse(is_none, zero, hn::IfThenElse(is_number, y.m, nan));
  return y;
}

}  // namespace HWY_NAMESPACE
}  // namespace fovea::detail
HWY_AFTER_NAMESPACE();

#endif  // FOVEA_KERNEL_SCALED_INL_H_
