// SPDX-License-Identifier: Apache-2.0
#include "fovea/task/decode/sampling.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "fovea/base/option.h"
#include "fovea/base/random.h"
#include "fovea/config/field.h"

namespace fovea {

namespace {

// The ids that may be chosen, sorted by likelihood: the first `count` of them (0: all).
std::vector<token> ranked(Vec<const float> logits, index count) {
  std::vector<token> ids;
  for (index i = 0; i < logits.size; ++i) {
    if (logits[i] > -INFINITY) ids.push_back(static_cast<token>(i));
  }
  const auto likelier = [&](token a, token b) {
    return logits[a] != logits[b] ? logits[a] > logits[b] : a < b;
  };
  const auto all = static_cast<index>(ids.size());
  const index kept = count > 0 ? std::min(count, all) : all;
  std::partial_sort(ids.begin(), ids.begin() + kept, ids.end(), likelier);
  ids.resize(static_cast<std::size_t>(kept));
  return ids;
}

// -infinity is a token that is ruled out.
void require_logits(Vec<const float> logits) {
  const bool good = std::all_of(logits.begin(), logits.end(), [](float x) { return x < INFINITY; });
  if (good) return;
  fail(ErrorCode::kModelDamaged, Hint{"train the model again, or use an earlier checkpoint"},
       "a logit of the model is NaN or infinite");
}

// How many of the first weights sum to the share p of the total; at least one.
std::size_t nucleus(std::span<const double> weights, double p) {
  const double wanted = p * std::accumulate(weights.begin(), weights.end(), 0.0);
  double sum = 0;
  for (std::size_t i = 0; i < weights.size(); ++i) {
    sum += weights[i];
    if (sum >= wanted) return i + 1;
  }
  return weights.size();
}

}  // namespace

void check_options(const SamplingOptions& o) {
  require_option(o.temperature > 0, Hint{"--greedy takes the most likely token each time"},
                 "temperature", o.temperature, "above 0");
  check_ranges(o);
}

token greedy_token(Vec<const float> logits) {
  index best = -1;
  for (index i = 0; i < logits.size; ++i) {
    if (logits[i] > -INFINITY && (best < 0 || logits[i] > logits[best])) best = i;
  }
  if (best < 0) fail(ErrorCode::kModelDamaged, "the model gives no token a probability");
  require_logits(logits);
  return static_cast<token>(best);
}

void apply_repetition_penalty(Vec<float> logits, std::span<const token> seen, double penalty) {
  std::vector<token> once(seen.begin(), seen.end());
  std::sort(once.begin(), once.end());
  once.erase(std::unique(once.begin(), once.end()), once.end());
  const auto factor = static_cast<float>(penalty);
  for (const token id : once) {
    check(id >= 0 && id < logits.size, "token {} is not in the vocabulary of {}", id, logits.size);
    logits[id] = logits[id] > 0 ? logits[id] / factor : logits[id] * factor;
  }
}

token sample_token(Vec<const float> logits, const SamplingOptions& options, std::uint64_t number) {
  if (options.greedy) return greedy_token(logits);
  const std::vector<token> ids = ranked(logits, options.top_k);
  if (ids.empty()) fail(ErrorCode::kModelDamaged, "the model gives no token a probability");
  require_logits(logits);
  std::vector<double> weights;
  weights.reserve(ids.size());
  for (const token id : ids) {
    weights.push_back(
        std::exp((double{logits[id]} - double{logits[ids[0]]}) / options.temperature));
  }
  weights.resize(nucleus(weights, options.top_p));
  const double sum = std::accumulate(weights.begin(), weights.end(), 0.0);
  double left = Random(options.seed, RandomUse::kSampling, number).uniform() * sum;
  for (std::size_t i = 0; i < weights.size(); ++i) {
    left -= weights[i];
    if (left < 0) return ids[i];
  }
  return ids[weights.size() - 1];
}

}  // namespace fovea
