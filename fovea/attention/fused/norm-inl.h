// SPDX-License-Identifier: Apache-2.0
// A norm as one policy, for one instruction set: what a score becomes, and the derivative. Forward,
// backward and the observers of columns share it.
#include "fovea/attention/norm.h"

#if defined(FOVEA_ATTENTION_FUSED_NORM_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef FOVEA_ATTENTION_FUSED_NORM_INL_H_
#undef FOVEA_ATTENTION_FUSED_NORM_INL_H_
#else
#define FOVEA_ATTENTION_FUSED_NORM_INL_H_
#endif

#include "fovea/simd/math-inl.h"
#include "fovea/simd/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace fovea::detail {
namespace HWY_NAMESPACE {

/// A weight, and d weight / d score.
template <class T>
struct WeightWithSlope {
  Vector<T> weight, slope;
};

/// Without softmax a weight depends on its own score alone.
template <class T>
HWY_INLINE WeightWithSlope<T> WeightOf(norm::Sigmoid, Vector<T> score) {
  const auto sigmoid = Sigmoid(Tag<T>(), score);
  return {sigmoid.s, sigmoid.slope};
}
template <class T>
HWY_INLINE WeightWithSlope<T> WeightOf(norm::None, Vector<T> score) {
  return {score, hn::Set(Tag<T>(), T{1})};
}

}  // namespace HWY_NAMESPACE
}  // namespace fovea::detail
HWY_AFTER_NAMESPACE();

#endif  // FOVEA_ATTENTION_FUSED_NORM_INL_H_
