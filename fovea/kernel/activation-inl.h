// SPDX-License-Identifier: Apache-2.0
// The functions of elementwise.h for one vector of float or double, for use inside kernels: the
// epilogue of a product applies them to sums that are still in registers. Include it below
// simd-inl.h. Its functions are in fovea::HWY_NAMESPACE.
#include "fovea/kernel/elementwise.h"

#if defined(FOVEA_KERNEL_ACTIVATION_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef FOVEA_KERNEL_ACTIVATION_INL_H_
#undef FOVEA_KERNEL_ACTIVATION_INL_H_
#else
#define FOVEA_KERNEL_ACTIVATION_INL_H_
#endif

#include <type_traits>

#include "fovea/simd/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace fovea {
namespace HWY_NAMESPACE {

/// Phi(x) and its derivative phi(x), the normal distribution.
template <class D>
struct NormalDistribution {
  hn::Vec<D> cumulative, density;
};

/// For float, both come from one exponential: phi(a) = exp(-a^2 / 2) / sqrt(2 pi), a = |x|, and
/// Phi(-a) = exp(-a^2 / 2) q(a), where q is a polynomial in a / (1 + 0.29 a). Phi(a) is 1 minus
/// that, so the left tail keeps its relative accuracy. The polynomial's error, relative to q, is at
/// most 7e-8 (1 + a^2 / 4). Beyond 14.25, where Phi(-a) is 0, q may stay what it is.
template <class D>
HWY_INLINE NormalDistribution<D> NormalAt(D d, hn::Vec<D> x) {
  const auto one = Constant(d, 1), half = Constant(d, 0.5);
  const auto bell = Exp2OfWeight(d, hn::Mul(hn::Mul(x, x), Constant(d, -0.5 * kLog2E<double>)));
  const auto density = hn::Mul(bell, Constant(d, 0.39894228040143267794));
  if constexpr (kIsDouble<D>) {
    const auto erfc =
        PerLane(d, x, [](double v) { return std::erfc(-v * 0.70710678118654752440); });
    return {hn::Mul(erfc, half), density};
  } else {
    const auto a = hn::Min(hn::Abs(x), Constant(d, 14.25));
    const auto v = hn::Div(a, hn::MulAdd(a, Constant(d, 0.29), one));
    const auto q =
        Polynomial(d, v, 0.5f, -0.39894250f, 0.134309709f, -0.0215456821f, 0.000183820463f,
                   0.000328189548f, 3.55233642e-05f, -2.13081111e-05f, 1.99574151e-06f);
    const auto tail = hn::Mul(bell, q);
    return {hn::IfThenElse(hn::Lt(x, hn::Zero(d)), tail, hn::Sub(one, tail)), density};
  }
}

inline constexpr double kGeluSlope = 1.5957691216057308;  // 2 sqrt(2 / pi)
inline constexpr double kGeluCube = 0.044715 * kGeluSlope;

/// Returns 2 u, u = sqrt(2 / pi) (x + 0.044715 x^3). (1 + tanh u) / 2 is the sigmoid of 2 u: it
/// needs one exponential and one division, and has no cancellation for negative x.
template <class D>
HWY_INLINE hn::Vec<D> GeluTanhArgument(D d, hn::Vec<D> x) {
  return hn::Mul(x, hn::MulAdd(hn::Mul(x, x), Constant(d, kGeluCube), Constant(d, kGeluSlope)));
}

/// f(x).
template <Activation kF, class D>
HWY_INLINE hn::Vec<D> Activate(D d, hn::Vec<D> x) {
  if constexpr (kF == Activation::kRelu) {
    return hn::IfThenElse(hn::Lt(x, hn::Zero(d)), hn::Zero(d), x);
  } else if constexpr (kF == Activation::kGelu) {
    return hn::Mul(x, NormalAt(d, x).cumulative);
  } else if constexpr (kF == Activation::kGeluTanh) {
    return hn::Mul(x, Sigmoid(d, GeluTanhArgument(d, x)).s);
  } else if constexpr (kF == Activation::kSilu) {
    return hn::Mul(x, Sigmoid(d, x).s);
  } else if constexpr (kF == Activation::kTanh) {
    return Tanh(d, x);
  } else {
    static_assert(kF == Activation::kNone);
    return x;
  }
}

/// f'(x).
template <Activation kF, class D>
HWY_INLINE hn::Vec<D> ActivateGradient(D d, hn::Vec<D> x) {
  const auto one = Constant(d, 1);
  if constexpr (kF == Activation::kRelu) {
    return hn::IfThenElse(hn::Gt(x, hn::Zero(d)), one, hn::Zero(d));
  } else if constexpr (kF == Activation::kGelu) {
    const auto normal = NormalAt(d, x);
    return hn::MulAdd(x, normal.density, normal.cumulative);
  } else if constexpr (kF == Activation::kGeluTanh) {
    const auto sigmoid = Sigmoid(d, GeluTanhArgument(d, x));
    const auto inner =
        hn::MulAdd(hn::Mul(x, x), Constant(d, 3 * kGeluCube), Constant(d, kGeluSlope));
    return hn::MulAdd(hn::Mul(x, sigmoid.slope), inner, sigmoid.s);
  } else if constexpr (kF == Activation::kSilu) {
    const auto sigmoid = Sigmoid(d, x);
    return hn::MulAdd(x, sigmoid.slope, sigmoid.s);
  } else if constexpr (kF == Activation::kTanh) {
    const auto t = Tanh(d, x);
    return hn::NegMulAdd(t, t, one);
  } else {
    static_assert(kF == Activation::kNone);
    return one;
  }
}

/// Calls g(constant) with the compile-time constant of f: constant() is f.
template <class G>
HWY_INLINE void WithActivation(Activation f, G&& g) {
  using enum Activation;
  switch (f) {
    case kNone:
      return g(std::integral_constant<Activation, kNone>());
    case kRelu:
      return g(std::integral_constant<Activation, kRelu>());
    case kGelu:
      return g(std::integral_constant<Activation, kGelu>());
    case kGeluTanh:
      return g(std::integral_constant<Activation, kGeluTanh>());
    case kSilu:
      return g(std::integral_constant<Activation, kSilu>());
    case kTanh:
      return g(std::integral_constant<Activation, kTanh>());
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace fovea
HWY_AFTER_NAMESPACE();

#endif  // FOVEA_KERNEL_ACTIVATION_INL_H_
