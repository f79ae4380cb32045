// SPDX-License-Identifier: Apache-2.0
#include "fovea/kernel/binary_cross_entropy.h"

#include <cmath>
#include <limits>

#include "fovea/base/profile.h"

// There are few logits in a batch of texts, so this is plain code in double: exact for logits of
// any size, and the same bits on every instruction set.
namespace fovea {

namespace {

void check_weights(std::string_view name, Vec<const double> weights, index K) {
  check_optional("binary_cross_entropy", name, weights, "K", K);
  for (const double w : weights) {
    if (w >= 0 && w <= std::numeric_limits<double>::max()) continue;
    fail(ErrorCode::kOptionValue,
         "binary_cross_entropy: a weight of {} is {}; it must be finite and at least 0", name, w);
  }
}

template <class T>
void check_targets(const BinaryTargets<T>& targets, index N, index K) {
  check_rows("binary_cross_entropy", "targets", targets.y, N, K);
  check_weights("ones", targets.weights.ones, K);
  check_weights("zeros", targets.weights.zeros, K);
  const double e = targets.weights.smoothing;
  if (!(e >= 0 && e < 1)) {
    fail(ErrorCode::kOptionValue, "binary_cross_entropy: smoothing is {}; it must be in [0, 1)", e);
  }
  for (index n = 0; n < N; ++n)
    for (index k = 0; k < K; ++k) {
      const auto y = static_cast<double>(targets.y[n][k]);
      if ((y >= 0 && y <= 1) || y == -1) continue;
      fail(ErrorCode::kOptionValue,
           "binary_cross_entropy: targets[{}, {}] is {}; it must be in 0 to 1, or -1 to be ignored",
           n, k, y);
    }
}

struct LossAndSlope {
  double loss, slope;
};

// log(1 + exp(z)) and its derivative, times `weight`. A weight of 0 makes a loss of infinity 0,
// too.
LossAndSlope softplus(double z, double weight) {
  if (weight == 0) return {0, 0};
  const double e = std::exp(-std::abs(z)), r = 1 / (1 + e);
  const double loss = (z > 0 ? z : 0) + std::log1p(e);
  return {weight * (std::isnan(z) ? z : loss), weight * (z < 0 ? e * r : r)};
}

LossAndSlope loss_of(double x, double y, const BinaryWeights& weights, index k) {
  if (y == -1) return {0, 0};
  const double p = weights.ones.empty() ? 1 : weights.ones[k];
  const double q = weights.zeros.empty() ? 1 : weights.zeros[k];
  const double target = (1 - weights.smoothing) * y + weights.smoothing / 2;
  const LossAndSlope one = softplus(-x, p * target), zero = softplus(x, q * (1 - target));
  return {one.loss + zero.loss, zero.slope - one.slope};
}

}  // namespace

template <class T>
double binary_cross_entropy(const Context& ctx, InRows<T> logits, const BinaryTargets<T>& targets,
                            double scale, Vec<T> losses, Rows<T> dlogits) {
  constexpr double kCost = 100;  // operations for one element
  const index N = logits.rows, K = logits.columns;
  check_targets(targets, N, K);
  check_vec("binary_cross_entropy", "losses", losses, "N", N);
  const bool with_gradient = dlogits.data != nullptr;
  if (with_gradient) check_rows("binary_cross_entropy", "dlogits", dlogits, N, K);
  const ProfileScope scope(ctx, pass_over<T>("binary cross entropy", N, K, 2));
  ctx.for_ranges(N, kCost * static_cast<double>(K), [&](index begin, index end) {
    for (index n = begin; n < end; ++n) {
      double sum = 0;
      for (index k = 0; k < K; ++k) {
        const auto [loss, slope] = loss_of(logits[n][k], targets.y[n][k], targets.weights, k);
        sum += loss;
        if (with_gradient) dlogits[n][k] = static_cast<T>(scale * slope);
      }
      losses[n] = static_cast<T>(sum);
    }
  });
  double total = 0;
  for (const T loss : losses) total += static_cast<double>(loss);
  return total;
}

template double binary_cross_entropy(const Context&, Rows<const float>, const BinaryTargets<float>&,
                                     double, Vec<float>, Rows<float>);
template double binary_cross_entropy(const Context&, Rows<const double>,
                                     const BinaryTargets<double>&, double, Vec<double>,
                                     Rows<double>);

}  // namespace fovea
