// SPDX-License-Identifier: Apache-2.0
// Elementary functions of vectors of lanes. Included from simd-inl.h.
//
// float: bounds of the error in units of the last place of the exact result (ulp; half of one is
// unavoidable), above what every 53rd of all floats showed on each instruction set;
// tests/simd/math_test.cc holds them to it on every 5003rd, and has a test of all 2^32:
//   Exp 1.05   Exp2, Exp2OfWeight 1.25 (0.95 with FMA)   Exp2OfWeight<5> 2.3   Tanh 1.35
// Infinities, NaN, signed zeros, denormal arguments and results and overflow are those of the C
// library, but which NaN comes out is not specified. double: the C library, a lane at a time.
#if defined(FOVEA_SIMD_MATH_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef FOVEA_SIMD_MATH_INL_H_
#undef FOVEA_SIMD_MATH_INL_H_
#else
#define FOVEA_SIMD_MATH_INL_H_
#endif

#include <cmath>
#include <cstdint>

#include "fovea/simd/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace fovea {
namespace HWY_NAMESPACE {

/// exp(x) = exp2(x log2 e). exp2 is cheaper, but rounding its argument gives an error of |x| / 2
/// ulp. That does not matter if x is small, or if the result is added to a much larger number.
template <class T>
inline constexpr T kLog2E = static_cast<T>(1.4426950408889634);

template <class D>
inline constexpr bool kIsDouble = std::is_same_v<hn::TFromD<D>, double>;

template <class D, class F>
HWY_INLINE hn::Vec<D> PerLane(D d, hn::Vec<D> x, F&& f) {
  HWY_ALIGN hn::TFromD<D> lanes[HWY_LANES(hn::TFromD<D>)];
  hn::Store(x, d, lanes);
  for (std::size_t i = 0; i < hn::Lanes(d); ++i) lanes[i] = f(lanes[i]);
  return hn::Load(d, lanes);
}

/// c[0] + c[1] x + c[2] x^2 ... (Horner).
template <class D, class... C>
HWY_INLINE hn::Vec<D> Polynomial(D d, hn::Vec<D> x, float c0, C... c) {
  if constexpr (sizeof...(C) == 0) {
    return hn::Set(d, c0);
  } else {
    return hn::MulAdd(Polynomial(d, x, c...), x, hn::Set(d, c0));
  }
}

#if HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX3
// t less the nearest integer, 0 for infinities; and m * 2^n for integral n, with one rounding.
HWY_INLINE Vector<float> FromNearest(Tag<float>, Vector<float> t) {
  return Vector<float>{_mm512_reduce_ps(t.raw, _MM_FROUND_TO_NEAREST_INT)};
}
HWY_INLINE Vector<float> ScaleByPowerOf2(Tag<float>, Vector<float> m, Vector<float> n) {
  return Vector<float>{_mm512_scalef_ps(m.raw, n.raw)};
}
#else
/// m * 2^n for integral n, |n| < 250, with one rounding: two factors, since 2^n may be no float.
HWY_INLINE Vector<float> ScaleByPowerOf2(Tag<float> d, Vector<float> m, Vector<float> n) {
  const hn::RebindToSigned<Tag<float>> di;
  const auto all = hn::ConvertTo(di, n);
  const auto half = hn::ShiftRight<1>(all);
  const auto power = [&](auto exponent) {
    return hn::BitCast(d, hn::ShiftLeft<23>(hn::Add(exponent, hn::Set(di, 127))));
  };
  return hn::Mul(hn::Mul(m, power(half)), power(hn::Sub(all, half)));
}
#endif

/// min(max(x, low), high), and NaN for NaN: maxps and minps return their second operand if one is
/// NaN, Highway's fallbacks do not.
HWY_INLINE Vector<float> ClampKeepingNaN(Tag<float> d, Vector<float> x, float low, float high) {
  const auto lo = hn::Set(d, low), hi = hn::Set(d, high);
  if constexpr (HWY_ARCH_X86 && HWY_TARGET <= HWY_SSSE3) {
    return hn::Min(hi, hn::Max(lo, x));
  } else {
    return hn::IfThenElse(hn::Lt(x, lo), lo, hn::IfThenElse(hn::Gt(x, hi), hi, x));
  }
}

/// 2^f for |f| <= 1/2, times `factor`, a power of two that changes no rounding. kDegree 6, or 5: a
/// multiplication less, and twice the error.
template <int kDegree>
HWY_INLINE Vector<float> Exp2OfFraction(Tag<float> d, Vector<float> f, float factor = 1) {
  static_assert(kDegree == 5 || kDegree == 6);
  const auto sum = [&](auto... c) { return Polynomial(d, f, c * factor...); };
  if constexpr (kDegree == 6) {
    return sum(1.0f, 0.693147182f, 0.240226477f, 0.0555033237f, 0.00961843692f, 0.0013398875f,
               0.00015353362f);
  } else {
    return sum(1.0f, 0.693147004f, 0.240222424f, 0.0555073358f, 0.00967151299f, 0.00132647273f);
  }
}

/// 2^x.
template <int kDegree = 6, class D>
HWY_INLINE hn::Vec<D> Exp2(D d, hn::Vec<D> x) {
  if constexpr (kIsDouble<D>) {
    return PerLane(d, x, [](double v) { return std::exp2(v); });
  } else {
#if HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX3
    const auto f = FromNearest(d, x);
    const auto whole = hn::Sub(x, f);
#else
    // Beyond these bounds the result is 0 or infinity.
    const auto t = ClampKeepingNaN(d, x, -152.0f, 129.0f);
    const auto whole = hn::Round(t);
    const auto f = hn::Sub(t, whole);
#endif
    return ScaleByPowerOf2(d, Exp2OfFraction<kDegree>(d, f), whole);
  }
}

/// 2^x for x up to 60, for the weights of a softmax, which are at most 1. For larger x the result
/// is at least 2^60, but not infinity. Without AVX-512 it takes half the time of Exp2.
template <int kDegree = 6, class D>
HWY_INLINE hn::Vec<D> Exp2OfWeight(D d, hn::Vec<D> x) {
  if constexpr (kIsDouble<D> || (HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX3)) {
    return Exp2<kDegree>(d, x);
  } else {
    const hn::RebindToSigned<D> di;
    const auto t = ClampKeepingNaN(d, x, -152.0f, 60.0f);
    // Added to 1.5 x 2^23 + 192, t becomes the nearest integer + 192, which then stands in the
    // lowest bits: the exponent of 2^(integer + 65), in [2^-87, 2^125]. For NaN these bits mean
    // nothing, but f is NaN, and so is the product.
    const auto magic = hn::Set(d, 0x1.8p23f + 192);
    const auto shifted = hn::Add(t, magic);
    const auto power = hn::BitCast(d, hn::ShiftLeft<23>(hn::BitCast(di, shifted)));
    const auto f = hn::Sub(t, hn::Sub(shifted, magic));
    // Both factors are normal, so a denormal result is rounded once.
    return hn::Mul(Exp2OfFraction<kDegree>(d, f, 0x1p-65f), power);
  }
}

/// e^x.
template <class D>
HWY_INLINE hn::Vec<D> Exp(D d, hn::Vec<D> x) {
  if constexpr (kIsDouble<D>) {
    return PerLane(d, x, [](double v) { return std::exp(v); });
  } else {
    // Beyond these bounds the result is 0 or infinity. ln 2 is split in two (Cody and
    // Waite): the product of n and the first part is exact.
    const auto t = ClampKeepingNaN(d, x, -105.0f, 90.0f);
    const auto n = hn::Round(hn::Mul(t, hn::Set(d, kLog2E<float>)));
    auto r = hn::NegMulAdd(n, hn::Set(d, 0x1.62e4p-1f), t);
    r = hn::NegMulAdd(n, hn::Set(d, 1.42860677e-6f), r);
    const auto q =
        Polynomial(d, r, 0.49999994f, 0.166665196f, 0.0416683927f, 0.00836878084f, 0.00138144672f);
    const auto p = hn::Add(hn::MulAdd(q, hn::Mul(r, r), r), hn::Set(d, 1.0f));
    return ScaleByPowerOf2(d, p, n);
  }
}

template <class D>
HWY_INLINE hn::Vec<D> Tanh(D d, hn::Vec<D> x) {
  if constexpr (kIsDouble<D>) {
    return PerLane(d, x, [](double v) { return std::tanh(v); });
  } else {
    const auto a = hn::Abs(x);
    const auto one = hn::Set(d, 1.0f), two = hn::Set(d, 2.0f);
    const auto large = hn::Sub(one, hn::Div(two, hn::Add(Exp(d, hn::Add(a, a)), one)));
    const auto z = hn::Mul(a, a);
    const auto q = Polynomial(d, z, -0.333332807f, 0.133314416f, -0.0537397154f, 0.0206390861f,
                              -0.0057049864f);
    const auto small = hn::MulAdd(hn::Mul(q, z), a, a);
    return hn::CopySign(hn::IfThenElse(hn::Lt(a, hn::Set(d, 0.625f)), small, large), x);
  }
}

template <class D>
HWY_INLINE hn::Vec<D> Constant(D d, double value) {
  return hn::Set(d, static_cast<hn::TFromD<D>>(value));
}

/// e^-x for terms of a sum with 1 (kLog2E), and for factors of at most 1: cheaper than Exp. Without
/// AVX-512, e^-x of x below -41 is at least 2^60 but finite, so that 1 / (1 + e^-x) is never below
/// 2^-61.
template <class D>
HWY_INLINE hn::Vec<D> WeightOfMinus(D d, hn::Vec<D> x) {
  return Exp2OfWeight(d, hn::Mul(x, hn::Set(d, -kLog2E<hn::TFromD<D>>)));
}

/// s = 1 / (1 + exp(-x)) and its derivative s (1 - s), which is accurate even if s is nearly 1.
template <class D>
struct SigmoidWithSlope {
  hn::Vec<D> s, slope;
};
template <class D>
HWY_INLINE SigmoidWithSlope<D> Sigmoid(D d, hn::Vec<D> x) {
  const auto one = Constant(d, 1);
  const auto e = WeightOfMinus(d, hn::Abs(x));
  const auto r = hn::Div(one, hn::Add(one, e));
  const auto er = hn::Mul(e, r);
  return {hn::IfThenElse(hn::Lt(x, hn::Zero(d)), er, r), hn::Mul(er, r)};
}

}  // namespace HWY_NAMESPACE
}  // namespace fovea
HWY_AFTER_NAMESPACE();

#endif  // FOVEA_SIMD_MATH_INL_H_
