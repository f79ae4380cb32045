// SPDX-License-Identifier: Apache-2.0
#include "fovea/task/explain/rollout.h"

#include "fovea/base/check.h"

namespace fovea {

namespace {

// r A of one layer. A row vector times a matrix each time: T x T numbers per layer, never T^3.
std::vector<double> through(const RolloutLayer& layer, const std::vector<double>& r) {
  const std::size_t T = r.size(), H = static_cast<std::size_t>(layer.heads);
  std::vector<double> next(T);
  for (std::size_t i = 0; i < T; ++i) {
    double total = 0;
    for (std::size_t h = 0; h < H; ++h) {
      const float* const row = layer.weights.data() + (h * T + i) * T;
      for (std::size_t j = 0; j < T; ++j) total += double{row[j]};
    }
    const double own = layer.residual ? (total > 0 ? 0.5 : 1.0) : 0.0;
    next[i] += own * r[i];
    const double share = r[i] * (layer.residual ? 0.5 : 1.0) / static_cast<double>(H);
    for (std::size_t h = 0; total > 0 && h < H; ++h) {
      const float* const row = layer.weights.data() + (h * T + i) * T;
      for (std::size_t j = 0; j < T; ++j) next[j] += share * double{row[j]};
    }
  }
  return next;
}

}  // namespace

std::vector<float> attention_rollout(std::span<const RolloutLayer> layers,
                                     std::span<const double> result) {
  std::vector<double> r(result.begin(), result.end());
  for (std::size_t l = layers.size(); l-- > 0;) {
    check(
        layers[l].weights.size() == static_cast<std::size_t>(layers[l].heads) * r.size() * r.size(),
        "rollout: layer {} has {} weights for {} heads and {} tokens", l + 1,
        layers[l].weights.size(), layers[l].heads, r.size());
    r = through(layers[l], r);
  }
  return {r.begin(), r.end()};
}

}  // namespace fovea
