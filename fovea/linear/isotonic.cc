// SPDX-License-Identifier: Apache-2.0
#include "fovea/linear/isotonic.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace fovea {

namespace {

// Texts beside each other that get one probability.
struct Pool {
  float first = 0, last = 0;  // log-odds
  double texts = 0, hits = 0;
  double expected = 0;  // hits, as the log-odds say

  double share() const { return hits / texts; }
  void take(const Pool& next) {
    last = next.last;
    texts += next.texts;
    hits += next.hits;
    expected += next.expected;
  }
};

// Adds a pool behind the others, and joins those whose shares do not ascend.
void add_pool(const Pool& next, std::vector<Pool>& pools) {
  pools.push_back(next);
  while (pools.size() > 1) {
    Pool& before = pools[pools.size() - 2];
    if (before.share() < pools.back().share()) break;
    before.take(pools.back());
    pools.pop_back();
  }
}

}  // namespace

double IsotonicMap::operator()(double z) const {
  const auto above = std::upper_bound(log_odds.begin(), log_odds.end(), z);
  const auto at = static_cast<std::size_t>(above - log_odds.begin());
  if (at == 0) return double{probabilities.front()};
  if (at == log_odds.size()) return double{probabilities.back()};
  const double low = double{log_odds[at - 1]}, high = double{log_odds[at]};
  const double share = (z - low) / (high - low);
  return (1 - share) * double{probabilities[at - 1]} + share * double{probabilities[at]};
}

IsotonicMap fit_isotonic(std::vector<IsotonicText> texts) {
  std::sort(texts.begin(), texts.end(), [](const IsotonicText& a, const IsotonicText& b) {
    return a.log_odds != b.log_odds ? a.log_odds < b.log_odds : a.is_true < b.is_true;
  });
  std::vector<Pool> pools;
  for (std::size_t begin = 0, end = 0; begin < texts.size(); begin = end) {
    const float z = texts[begin].log_odds;
    Pool equal{.first = z, .last = z};
    for (end = begin; end < texts.size() && texts[end].log_odds == z; ++end) {
      equal.texts += texts[end].weight;
      equal.hits += texts[end].is_true ? texts[end].weight : 0;
    }
    equal.expected = equal.texts / (1 + std::exp(-double{z}));
    add_pool(equal, pools);
  }
  // With a text more in each, neighbours may be out of order again.
  std::vector<Pool> settled;
  for (Pool& pool : pools) {
    pool.hits += pool.expected / pool.texts;
    pool.texts += 1;
    add_pool(pool, settled);
  }
  IsotonicMap map;
  const auto add = [&](float z, double share) {
    constexpr float kLeast = 1e-6F;
    map.log_odds.push_back(z);
    map.probabilities.push_back(std::clamp(static_cast<float>(share), kLeast, 1 - kLeast));
  };
  for (const Pool& pool : settled) {
    add(pool.first, pool.share());
    if (pool.last > pool.first) add(pool.last, pool.share());
  }
  return map;
}

}  // namespace fovea
