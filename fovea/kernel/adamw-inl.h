// SPDX-License-Identifier: Apache-2.0
// AdamW of one vector of values. Both kernels of AdamW use it, so that an update that is made later
// has the same bits (kernel/adamw_rows.h).
#if defined(FOVEA_KERNEL_ADAMW_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef FOVEA_KERNEL_ADAMW_INL_H_
#undef FOVEA_KERNEL_ADAMW_INL_H_
#else
#define FOVEA_KERNEL_ADAMW_INL_H_
#endif

#include "fovea/simd/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace fovea {
namespace HWY_NAMESPACE {

/// The factors of one update (kernel/adamw_factors.h), each in all lanes.
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

}  // namespace HWY_NAMESPACE
}  // namespace fovea
HWY_AFTER_NAMESPACE();

#endif  // FOVEA_KERNEL_ADAMW_INL_H_
