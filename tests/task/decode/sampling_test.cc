// SPDX-License-Identifier: Apache-2.0
#include "fovea/task/decode/sampling.h"

#include <gmock/gmock.h>

#include <cmath>
#include <map>

#include "fovea/base/error.h"
#include "tests/support/throws.h"

namespace fovea {
namespace {

using Logits = std::vector<float>;

Vec<const float> view(const Logits& logits) {
  return {logits.data(), static_cast<index>(logits.size())};
}

std::map<token, double> frequencies(const Logits& logits, const SamplingOptions& options) {
  constexpr int kDraws = 20000;
  std::map<token, double> counts;
  for (int i = 0; i < kDraws; ++i) {
    counts[sample_token(view(logits), options, static_cast<std::uint64_t>(i))] += 1.0 / kDraws;
  }
  return counts;
}

TEST(Sampling, GreedyTakesTheFirstOfTheHighest) {
  EXPECT_EQ(greedy_token(view({1, 3, 2, 3})), 1);
  EXPECT_EQ(greedy_token(view({-INFINITY, -5, -INFINITY})), 1);
  EXPECT_THROW(greedy_token(view({-INFINITY, NAN})), Error);
}

// With temperature 1 a token comes up as often as softmax says: 1/2, 1/3, 1/6.
TEST(Sampling, FollowsTheSoftmax) {
  const Logits logits = {std::log(3.0f), std::log(2.0f), 0.0f};
  const auto seen = frequencies(logits, {.temperature = 1});
  EXPECT_NEAR(seen.at(0), 1.0 / 2, 0.015);
  EXPECT_NEAR(seen.at(1), 1.0 / 3, 0.015);
  EXPECT_NEAR(seen.at(2), 1.0 / 6, 0.015);
}

// At half the temperature probabilities go with their squares: 9, 4, 1 of 14.
TEST(Sampling, TemperatureSharpens) {
  const Logits logits = {std::log(3.0f), std::log(2.0f), 0.0f};
  const auto seen = frequencies(logits, {.temperature = 0.5});
  EXPECT_NEAR(seen.at(0), 9.0 / 14, 0.015);
  EXPECT_NEAR(seen.at(2), 1.0 / 14, 0.01);
}

TEST(Sampling, TopKKeepsTheLikeliest) {
  const Logits logits = {0.0f, std::log(2.0f), std::log(3.0f), 0.0f};
  const auto seen = frequencies(logits, {.temperature = 1, .top_k = 2});
  ASSERT_EQ(seen.size(), 2u);
  EXPECT_NEAR(seen.at(1), 2.0 / 5, 0.015);
  EXPECT_NEAR(seen.at(2), 3.0 / 5, 0.015);
}

TEST(Sampling, TopPKeepsTheFewestThatReachTheShare) {
  const Logits logits = {std::log(.5f), std::log(.3f), std::log(.15f), std::log(.05f)};
  EXPECT_EQ(frequencies(logits, {.temperature = 1, .top_p = .49}).size(), 1u);
  EXPECT_EQ(frequencies(logits, {.temperature = 1, .top_p = .7}).size(), 2u);
  EXPECT_EQ(frequencies(logits, {.temperature = 1, .top_p = .9}).size(), 3u);
  EXPECT_EQ(frequencies(logits, {.temperature = 1, .top_p = 1}).size(), 4u);
}

TEST(Sampling, NeverChoosesWhatIsRuledOut) {
  const Logits logits = {-INFINITY, 0.0f, -INFINITY, 0.0f};
  const auto seen = frequencies(logits, {.temperature = 100});
  EXPECT_EQ(seen.count(0) + seen.count(2), 0u);
}

TEST(Sampling, RefusesLogitsThatAreNotFinite) {
  for (const float bad : {INFINITY, NAN}) {
    const Logits logits = {0, bad, 1};
    for (const bool greedy : {false, true}) {
      EXPECT_THROWS(sample_token(view(logits), {.greedy = greedy}, 1), kModelDamaged,
                    "a logit of the model is NaN or infinite");
    }
  }
}

TEST(Sampling, IsAFunctionOfSeedAndNumber) {
  const Logits logits(100, 0.0f);
  SamplingOptions options{.temperature = 1, .seed = 7};
  const token first = sample_token(view(logits), options, 3);
  EXPECT_EQ(sample_token(view(logits), options, 3), first);
  int changed = 0;
  for (std::uint64_t seed = 8; seed < 28; ++seed) {
    options.seed = seed;
    changed += sample_token(view(logits), options, 3) != first ? 1 : 0;
  }
  EXPECT_GT(changed, 15);
}

TEST(Sampling, PenaltyCountsATokenOnce) {
  Logits logits = {2, -2, 2};
  const std::vector<token> seen = {0, 1, 0, 0};
  apply_repetition_penalty({logits.data(), 3}, seen, 2);
  EXPECT_THAT(logits, testing::ElementsAre(1, -4, 2));
}

TEST(Sampling, RefusesOptionsThatMakeNoSense) {
  for (const SamplingOptions& bad :
       {SamplingOptions{.max_tokens = 0}, SamplingOptions{.temperature = 0},
        SamplingOptions{.temperature = NAN}, SamplingOptions{.top_k = -1},
        SamplingOptions{.top_p = 0}, SamplingOptions{.top_p = 1.5},
        SamplingOptions{.repetition_penalty = 0}}) {
    EXPECT_THROW(check_options(bad), Error);
  }
  EXPECT_NO_THROW(check_options(SamplingOptions{}));
}

}  // namespace
}  // namespace fovea
