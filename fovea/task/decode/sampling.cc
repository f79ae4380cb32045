// SPDX-License-Identifier: Apache-2.0
#include "fovea/task/decode/sampling.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "fovea/base/check.h"
#include "fovea/base/option.h"
#include "fovea/base/random.h"
#include "fovea/config/field.h"
#include "fovea/kernel/softmax.h"

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

// Tokens are numbered by sentence, then by place; each sample of a sentence has a seed of its own.
constexpr std::uint64_t kMostTokens = std::uint64_t{1} << 20;

std::uint64_t seed_of(std::uint64_t seed, index sample) {
  if (sample == 0) return seed;
  return Random(seed, RandomUse::kSeeds, static_cast<std::uint64_t>(sample)).next_u64();
}

struct Sample {
  index sentence = 0;
  std::uint64_t seed = 0;
  std::uint64_t first = 0;  // the number of its first token
  index row = 0;            // of the step before
  Hypothesis hypothesis = {};
  bool ended = false;
};

class Sampler {
 public:
  Sampler(const Context& context, NextTokenModel& model, const SampleTask& task,
          const SamplingOptions& options)
      : context_(context), model_(model), task_(task), options_(options) {
    for (std::size_t s = 0; s < task.numbers.size(); ++s) {
      for (index n = 0; n < task.samples; ++n) {
        samples_.push_back({.sentence = static_cast<index>(s),
                            .seed = seed_of(options.seed, n),
                            .first = task.numbers[s] * kMostTokens,
                            .row = static_cast<index>(s)});
      }
    }
  }

  std::vector<std::vector<Hypothesis>> run() {
    while (step()) {
    }
    std::vector<std::vector<Hypothesis>> drawn(task_.numbers.size());
    for (Sample& sample : samples_) {
      Hypothesis& made = sample.hypothesis;
      made.score = made.log_probability;
      drawn[static_cast<std::size_t>(sample.sentence)].push_back(std::move(made));
    }
    return drawn;
  }

 private:
  // Returns false when all have ended.
  bool step() {
    std::vector<Sample*> going;
    std::vector<index> parents;
    std::vector<std::int32_t> ids;
    for (Sample& sample : samples_) {
      if (sample.ended) continue;
      const auto& tokens = sample.hypothesis.tokens;
      parents.push_back(sample.row);
      ids.push_back(tokens.empty() ? task_.search.begin : tokens.back());
      sample.row = static_cast<index>(going.size());
      going.push_back(&sample);
    }
    if (going.empty()) return false;
    const Rows<const float> logits =
        model_.step(parents, {ids.data(), static_cast<index>(ids.size())});
    std::vector<double> log_sums(going.size());
    log_sum_exp(context_, logits, Vec<double>(log_sums.data(), logits.rows));
    context_.for_ranges(logits.rows, static_cast<double>(logits.columns),
                        [&](index begin, index end) {
                          for (index n = begin; n < end; ++n) {
                            const auto i = static_cast<std::size_t>(n);
                            draw(*going[i], {logits[n], logits.columns}, log_sums[i]);
                          }
                        });
    return true;
  }

  void draw(Sample& sample, Vec<const float> logits, double log_sum) const {
    if (!std::isfinite(log_sum)) {
      fail(ErrorCode::kModelDamaged, "the model gives no token a probability");
    }
    std::vector<token>& tokens = sample.hypothesis.tokens;
    const auto place = static_cast<index>(tokens.size());
    const index longest = task_.search.longest[static_cast<std::size_t>(sample.sentence)];
    const bool must_end = !task_.open_end && place + 1 >= longest;
    token chosen = task_.search.end;
    if (!must_end) {
      std::vector<float> choices(logits.begin(), logits.end());
      for (std::size_t id = 0; id < task_.search.forbidden.size(); ++id) {
        if (task_.search.forbidden[id]) choices[id] = -INFINITY;
      }
      SamplingOptions own = options_;
      own.seed = sample.seed;
      chosen = sample_token({choices.data(), logits.size}, own,
                            sample.first + static_cast<std::uint64_t>(place));
    }
    if (!must_end || !task_.free_end) {
      sample.hypothesis.log_probability += double{logits[chosen]} - log_sum;
    }
    sample.hypothesis.has_end = chosen == task_.search.end;
    if (!sample.hypothesis.has_end) tokens.push_back(chosen);
    const std::vector<token>& more = task_.search.more_ends;
    sample.ended = sample.hypothesis.has_end || std::ranges::find(more, chosen) != more.end() ||
                   (task_.open_end && place + 1 == longest);
  }

  const Context& context_;
  NextTokenModel& model_;
  const SampleTask& task_;
  const SamplingOptions& options_;
  std::vector<Sample> samples_;
};

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

std::vector<std::vector<Hypothesis>> sample_search(const Context& context, NextTokenModel& model,
                                                   const SampleTask& task,
                                                   const SamplingOptions& options) {
  check_options(options);
  check(task.search.longest.size() == task.numbers.size(), "samples: {} lengths for {} sentences",
        task.search.longest.size(), task.numbers.size());
  return Sampler(context, model, task, options).run();
}

}  // namespace fovea
