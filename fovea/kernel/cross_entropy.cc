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

// Stores max and the sum of exp(logits - max), and writes dlogits if they are not null:
// dlogits = scale softmax(logits) - rest; the caller corrects the target's column. kLog2E explains
// why it computes 2^(x log2 e) and not e^x.
template <class T>
void SoftmaxRow(const T* logits, index V, T scale, T rest, T* dlogits, T* max_and_sum) {
  const T max = Max(logits, V);
  const T sum = SumOf<T>(V, [=](auto lanes, index v) {
    const auto below = hn::Sub(lanes.Load(logits + v), lanes.Set(max));
    const auto e = Exp2OfWeight(lanes.d, hn::Mul(below, lanes.Set(kLog2E<T>)));
    if (dlogits != nullptr) lanes.Store(e, dlogits + v);
    return e;
  });
  max_and_sum[0] = max;
  max_and_sum[1] = sum;
  if (dlogits == nullptr) return;
  const T factor = sum == T{0} ? T{0} : scale / sum;
  ForEachLane<T>(V, [=](auto lanes, index v) {
    const auto scaled = hn::Mul(lanes.Load(dlogits + v), lanes.Set(factor));
    lanes.Store(hn::Sub(scaled, lanes.Set(rest)), dlogits + v);
  });
}

// The sum of x[v] - from.
template <class T>
double DifferencesRow(const T* x, index V, T from) {
  return static_cast<double>(SumOf<T>(
      V, [=](auto lanes, index v) { return hn::Sub(lanes.Load(x + v), lanes.Set(from)); }));
}

auto SoftmaxRowKernel() { return PerPrecision{SoftmaxRow<float>, SoftmaxRow<double>}; }
auto DifferencesRowKernel() { return PerPrecision{DifferencesRow<float>, DifferencesRow<double>}; }

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
HWY_EXPORT(DifferencesRowKernel);

// log(sum) - (x - max), not (log(sum) + max) - x, which would lose digits: the difference of two
// large numbers is small.
template <class T>
T loss_of(T target_logit, T max, T sum) {
  if (sum == T{0}) return std::numeric_limits<T>::infinity();
  return std::log(sum) - (target_logit - max);
}

double weight_of(const Targets& targets, index v) {
  return targets.weights.empty() ? 1 : targets.weights[v];
}

// The part of the target that smoothing gives to class v.
double rest_of(const Targets& targets, index V, index v) {
  return targets.smoothing / static_cast<double>(V) * weight_of(targets, v);
}

double sum_of_rests(const Targets& targets, index V) {
  if (targets.smoothing == 0) return 0;
  double sum = 0;
  for (index v = 0; v < V; ++v) sum += rest_of(targets, V, v);
  return sum;
}

// How much larger the logits of all classes are than that of the target, by the shares that
// smoothing gives them.
template <class T>
double rest_of_loss(const Targets& targets, const T* logits, index V, T target_logit) {
  if (targets.smoothing == 0) return 0;
  double sum = 0;
  for (index v = 0; v < V; ++v) {
    const double share = rest_of(targets, V, v);
    if (share > 0) sum += share * (static_cast<double>(logits[v]) - target_logit);
  }
  return sum;
}

void check_targets(const Targets& targets, index V) {
  check_optional("cross_entropy", "weights", targets.weights, "V", V);
  for (const double w : targets.weights) {
    if (w >= 0 && w <= std::numeric_limits<double>::max()) continue;
    fail(ErrorCode::kOptionValue,
         "cross_entropy: the weight of a class is {}; it must be finite and at least 0", w);
  }
  if (targets.smoothing >= 0 && targets.smoothing < 1) return;
  fail(ErrorCode::kOptionValue, "cross_entropy: smoothing is {}; it must be in [0, 1)",
       targets.smoothing);
}

// A row of the call: `rests` is the sum of what smoothing gives to the classes. Without weights
// they all get the same, so vectors add it up and subtract it.
template <class T>
struct LossRow {
  const Targets& targets;
  double scale, rests;
  void (*softmax)(const T* logits, index V, T scale, T rest, T* dlogits, T* max_and_sum);
  double (*differences)(const T* logits, index V, T from);

  bool is_even() const { return targets.weights.empty(); }

  double rest_of_row(const T* logits, index V, T target_logit) const {
    if (targets.smoothing == 0 || !is_even()) {
      return rest_of_loss(targets, logits, V, target_logit);
    }
    return rest_of(targets, V, 0) * differences(logits, V, target_logit);
  }

  // The loss of the row; dx, if not null, gets its gradient and may be the logits.
  T run(const T* logits, index V, std::int32_t target, T* dx) const {
    const double share = (1 - targets.smoothing) * weight_of(targets, target);
    const double all = share + rests;
    const T target_logit = logits[target];
    const double rest = rest_of_row(logits, V, target_logit);
    const double of_each = is_even() ? rest_of(targets, V, 0) : 0;
    T max_and_sum[2];
    softmax(logits, V, static_cast<T>(scale * all), static_cast<T>(scale * of_each), dx,
            max_and_sum);
    if (dx != nullptr) {
      for (index v = 0; !is_even() && targets.smoothing > 0 && v < V; ++v) {
        if (v != target) dx[v] -= static_cast<T>(scale * rest_of(targets, V, v));
      }
      const double of_target = is_even() ? 0 : rest_of(targets, V, target);
      dx[target] -= static_cast<T>(scale * (share + of_target));
    }
    const auto& [max, sum] = max_and_sum;
    const double loss = loss_of(target_logit, max, sum);
    return static_cast<T>(all == 0 ? 0 : std::isinf(loss) ? loss : all * loss - rest);
  }
};

}  // namespace

index count_targets(const Targets& targets, index V) {
  check_targets(targets, V);
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

double weigh_targets(const Targets& targets, index V) {
  count_targets(targets, V);
  double sum = 0;
  for (const std::int32_t id : targets.ids) {
    if (id != targets.ignore) sum += weight_of(targets, id);
  }
  return sum;
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
  const LossRow<T> row{targets, scale, sum_of_rests(targets, V),
                       FOVEA_DISPATCH(SoftmaxRowKernel)().of<T>(),
                       FOVEA_DISPATCH(DifferencesRowKernel)().of<T>()};
  const ProfileScope scope(ctx, pass_over<T>("cross entropy", N, V, 2));
  ctx.for_ranges(N, kCost * static_cast<double>(V), [&](index begin, index end) {
    for (index n = begin; n < end; ++n) {
      const std::int32_t target = targets.ids[n];
      T* const dx = with_gradient ? dlogits[n] : nullptr;
      if (target != targets.ignore) {
        losses[n] = row.run(logits[n], V, target, dx);
        continue;
      }
      losses[n] = T{0};
      if (with_gradient) std::fill_n(dx, V, T{0});
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
