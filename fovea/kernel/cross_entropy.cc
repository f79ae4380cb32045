// SPDX-License-Identifier: Apache-2.0
#include "fovea/kernel/cross_entropy.h"

#include <cmath>
#include <limits>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "fovea/kernel/cross_entropy.cc"
#include "hwy/foreach_target.h"  // compiles this file once for each instruction set
//
#include "fovea/simd/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace fovea {
namespace HWY_NAMESPACE {
namespace {

// Returns max and the sum of exp(logits - max), and writes dlogits if they are not null:
// dlogits = scale softmax(logits); the caller corrects the target's column. kLog2E explains why it
// computes 2^(x log2 e) and not e^x.
template <class T>
void SoftmaxRow(const T* logits, index V, T scale, T* dlogits, T& max_out, T& sum_out) {
  const T max = Max(logits, V);
  const T sum = SumOf<T>(V, [=](auto lanes, index v) {
    const auto below = hn::Sub(lanes.Load(logits + v), lanes.Set(max));
    const auto e = Exp2OfWeight(lanes.d, hn::Mul(below, lanes.Set(kLog2E<T>)));
    if (dlogits != nullptr) lanes.Store(e, dlogits + v);
    return e;
  });
  max_out = max;
  sum_out = sum;
  if (dlogits == nullptr) return;
  const T factor = sum == T{0} ? T{0} : scale / sum;
  ForEachLane<T>(V, [=](auto lanes, index v) {
    lanes.Store(hn::Mul(lanes.Load(dlogits + v), lanes.Set(factor)), dlogits + v);
  });
}

auto SoftmaxRowKernel() { return PerPrecision{SoftmaxRow<float>, SoftmaxRow<double>}; }

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace fovea
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include <algorithm>

#include "fovea/base/profile.h"

namespace fovea {
namespace {

HWY_EXPORT(SoftmaxRowKernel);

// log(sum) - (x - max), not (log(sum) + max) - x, which would lose digits: the difference of two
// large numbers is small.
template <class T>
T loss_of(T target_logit, T max, T sum) {
  if (sum == T{0}) return std::numeric_limits<T>::infinity();
  return std::log(sum) - (target_logit - max);
}

}  // namespace

index count_targets(const Targets& targets, index V) {
  index count = 0;
  for (index n = 0; n < targets.ids.size; ++n) {
    const std::int32_t id = targets.ids[n];
    if (id == targets.ignore) continue;
    check(id >= 0 && id < V,
          "cross_entropy: targets[{}] is {}; it must be in 0 to {}, or {} to be ignored", n, id,
          V - 1, targets.ignore);
    ++count;
  }
  return count;
}

template <class T>
CrossEntropy cross_entropy(const Context& ctx, InRows<T> logits, const Targets& targets,
                           double scale, Vec<T> losses, Rows<T> dlogits) {
  constexpr double kCost = 12;  // operations for one element
  const index N = logits.rows, V = logits.columns;
  check_vec("cross_entropy", "targets", targets.ids, "N", N);
  check_vec("cross_entropy", "losses", losses, "N", N);
  const bool with_gradient = dlogits.data != nullptr;
  if (with_gradient) check_rows("cross_entropy", "dlogits", dlogits, N, V);
  CrossEntropy result{.total = 0, .count = count_targets(targets, V)};
  const auto softmax = FOVEA_DISPATCH(SoftmaxRowKernel)().of<T>();
  const T factor = static_cast<T>(scale);
  const ProfileScope scope(ctx, pass_over<T>("cross entropy", N, V, 2));
  ctx.for_ranges(N, kCost * static_cast<double>(V), [&](index begin, index end) {
    for (index n = begin; n < end; ++n) {
      const std::int32_t target = targets.ids[n];
      T* const dx = with_gradient ? dlogits[n] : nullptr;
      losses[n] = T{0};
      if (target == targets.ignore) {
        if (with_gradient) std::fill_n(dx, V, T{0});
        continue;
      }
      const T target_logit = logits[n][target];
      T max, sum;
      softmax(logits[n], V, factor, dx, max, sum);
      losses[n] = loss_of(target_logit, max, sum);
      if (with_gradient) dx[target] -= factor;
    }
  });
  for (const T loss : losses) result.total += static_cast<double>(loss);
  return result;
}

template CrossEntropy cross_entropy(const Context&, Rows<const float>, const Targets&, double,
                                    Vec<float>, Rows<float>);
template CrossEntropy cross_entropy(const Context&, Rows<const double>, const Targets&, double,
                                    Vec<double>, Rows<double>);

}  // namespace fovea
#endif  // HWY_ONCE
