// SPDX-License-Identifier: Apache-2.0
#include "fovea/explain/rollout.h"

#include "fovea/base/check.h"

namespace fovea {

namespace {

// One sequence of a layer: its heads, and which tokens it has.
struct Sequence {
  const float* weights;  // [heads, n, n]
  std::size_t n, first, step;

  std::size_t token(std::size_t i) const { return first + i * step; }
};

// A row vector times a matrix: n x n numbers for each head, never n^3.
void add_sequence(const RolloutLayer& layer, const Sequence& of, const std::vector<double>& r,
                  std::vector<double>& next) {
  const std::size_t n = of.n, H = static_cast<std::size_t>(layer.heads);
  for (std::size_t i = 0; i < n; ++i) {
    double total = 0;
    for (std::size_t h = 0; h < H; ++h) {
      const float* const row = of.weights + (h * n + i) * n;
      for (std::size_t j = 0; j < n; ++j) total += double{row[j]};
    }
    const double here = r[of.token(i)];
    const double own = layer.residual ? (total > 0 ? 0.5 : 1.0) : 0.0;
    next[of.token(i)] += own * here;
    const double share = here * (layer.residual ? 0.5 : 1.0) / static_cast<double>(H);
    for (std::size_t h = 0; total > 0 && h < H; ++h) {
      const float* const row = of.weights + (h * n + i) * n;
      for (std::size_t j = 0; j < n; ++j) next[of.token(j)] += share * double{row[j]};
    }
  }
}

// r A of one layer.
std::vector<double> through(const RolloutLayer& layer, const std::vector<double>& r) {
  const auto sequences = static_cast<std::size_t>(layer.sequences);
  const std::size_t n = r.size() / sequences, size = static_cast<std::size_t>(layer.heads) * n * n;
  std::vector<double> next(r.size());
  for (std::size_t s = 0; s < sequences; ++s) {
    add_sequence(layer,
                 {.weights = layer.weights.data() + s * size,
                  .n = n,
                  .first = layer.across ? s : s * n,
                  .step = layer.across ? sequences : 1},
                 r, next);
  }
  return next;
}

}  // namespace

std::vector<float> attention_rollout(std::span<const RolloutLayer> layers,
                                     std::span<const double> result) {
  std::vector<double> r(result.begin(), result.end());
  for (std::size_t l = layers.size(); l-- > 0;) {
    const auto sequences = static_cast<std::size_t>(layers[l].sequences);
    const std::size_t n = r.size() / sequences;
    check(n * sequences == r.size() &&
              layers[l].weights.size() ==
                  sequences * static_cast<std::size_t>(layers[l].heads) * n * n,
          "rollout: layer {} has {} weights for {} heads, {} tokens and {} sequences", l + 1,
          layers[l].weights.size(), layers[l].heads, r.size(), sequences);
    r = through(layers[l], r);
  }
  return {r.begin(), r.end()};
}

}  // namespace fovea
