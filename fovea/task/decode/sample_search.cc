// SPDX-License-Identifier: Apache-2.0
#include "fovea/task/decode/sample_search.h"

#include <cmath>

#include "fovea/base/check.h"
#include "fovea/base/random.h"
#include "fovea/kernel/softmax.h"

namespace fovea {

namespace {

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
    token chosen = task_.search.end;
    if (place + 1 < longest) {
      std::vector<float> choices(logits.begin(), logits.end());
      for (std::size_t id = 0; id < task_.search.forbidden.size(); ++id) {
        if (task_.search.forbidden[id]) choices[id] = -INFINITY;
      }
      SamplingOptions own = options_;
      own.seed = sample.seed;
      chosen = sample_token({choices.data(), logits.size}, own,
                            sample.first + static_cast<std::uint64_t>(place));
    }
    sample.hypothesis.log_probability += double{logits[chosen]} - log_sum;
    if (chosen == task_.search.end) {
      sample.ended = true;
    } else {
      tokens.push_back(chosen);
    }
  }

  const Context& context_;
  NextTokenModel& model_;
  const SampleTask& task_;
  const SamplingOptions& options_;
  std::vector<Sample> samples_;
};

}  // namespace

std::vector<std::vector<Hypothesis>> sample_search(const Context& context, NextTokenModel& model,
                                                   const SampleTask& task,
                                                   const SamplingOptions& options) {
  check_options(options);
  check(task.search.longest.size() == task.numbers.size(), "samples: {} lengths for {} sentences",
        task.search.longest.size(), task.numbers.size());
  return Sampler(context, model, task, options).run();
}

}  // namespace fovea
