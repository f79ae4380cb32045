// SPDX-License-Identifier: Apache-2.0
// The functions of activation.h for one vector of float or double, for use inside kernels: the
// epilogue of a product applies them to sums that are still in registers. Include it below
// simd-inl.h. Its functions are in fovea::HWY_NAMESPACE.
#include "fovea/kernel/activation.h"

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

/// Phi(x), the normal distribution. For float: half of erfc(a), a = |x| / sqrt 2, is
/// exp(-a (1 + q(a))) / 2 with a polynomial q (absolute error of Phi 2e-9 over all x, before
/// rounding); for x >= 0 the result is 1 minus that. So the left tail keeps its relative accuracy.
template <class D>
HWY_INLINE hn::Vec<D> NormalDistribution(D d, hn::Vec<D> x) {
  if constexpr (kIsDouble<D>) {
    return PerLane(d, x, [](double v) { return std::erfc(-v * 0.70710678118654752440) / 2; });
  } else {
    const auto a = hn::Abs(hn::Mul(x, Constant(d, 0.70710678118654752440)));
    const auto q = Polynomial(d, hn::Min(a, Constant(d, 4.4)), 0.12837933f, 0.63661611f,
                              0.102799207f, -0.0192171428f, -5.87823997e-05f, 0.00157676102f,
                              -0.000587951159f, 0.000106026775f, -8.04383671e-06f);
    const auto tail = hn::Mul(Constant(d, 0.5), WeightOfMinus(d, hn::MulAdd(q, a, a)));
    return hn::IfThenElse(hn::Lt(x, hn::Zero(d)), tail, hn::Sub(Constant(d, 1), tail));
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
    return hn::Mul(x, NormalDistribution(d, x));
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
    const auto bell = WeightOfMinus(d, hn::Mul(hn::Mul(x, x), Constant(d, 0.5)));
    const auto density = hn::Mul(bell, Constant(d, 0.39894228040143267794));
    return hn::MulAdd(x, density, NormalDistribution(d, x));
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
