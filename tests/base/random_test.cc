// SPDX-License-Identifier: Apache-2.0
#include "fovea/base/random.h"

#include <gmock/gmock.h>

#include <cmath>
#include <set>
#include <vector>

#include "tests/support/throws.h"

namespace fovea {
namespace {

// The known-answer vectors that Random123 publishes for philox4x32-10 (kat_vectors).
TEST(Philox, GivesTheKnownAnswers) {
  EXPECT_EQ(philox4x32({0, 0, 0, 0}, {0, 0}),
            (PhiloxCounter{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(philox4x32({0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff}, {0xffffffff, 0xffffffff}),
            (PhiloxCounter{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(philox4x32({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}),
            (PhiloxCounter{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

std::vector<std::uint64_t> draw(Random random, int n) {
  std::vector<std::uint64_t> words;
  for (int i = 0; i < n; ++i) words.push_back(random.next_u64());
  return words;
}

TEST(Random, ACopyRepeatsTheDraws) {
  Random random(7, RandomUse::kTest, 3);
  random.next_u32();
  EXPECT_EQ(draw(random, 100), draw(random, 100));
}

TEST(Random, SeedUseAndNumberNameDifferentStreams) {
  std::set<std::uint64_t> words;
  const Random streams[] = {{1, RandomUse::kTest},
                            {2, RandomUse::kTest},
                            {1, RandomUse::kInit},
                            {1, RandomUse::kTest, 1},
                            {1 + (std::uint64_t{1} << 32), RandomUse::kTest},
                            {1, RandomUse::kTest, std::uint64_t{1} << 32}};
  for (const Random& stream : streams) {
    for (const std::uint64_t word : draw(stream, 50)) words.insert(word);
  }
  EXPECT_EQ(words.size(), std::size(streams) * 50);
}

// The words of a stream are those of successive counters: what a kernel computes for itself.
TEST(Random, WordsAreThoseOfTheCounters) {
  Random random(0x123456789abcdef0, RandomUse::kDropout, 0xfedcba9876543210);
  for (std::uint32_t block = 0; block < 3; ++block) {
    const auto use = static_cast<std::uint32_t>(RandomUse::kDropout);
    const PhiloxCounter expected =
        philox4x32({block, use, 0x76543210, 0xfedcba98}, {0x9abcdef0, 0x12345678});
    for (const std::uint32_t word : expected) EXPECT_EQ(random.next_u32(), word);
  }
}

TEST(Random, BelowIsUniformOverItsRange) {
  Random random(11, RandomUse::kTest);
  constexpr int kDraws = 70000;
  std::vector<double> counts(7);
  for (int i = 0; i < kDraws; ++i) ++counts.at(static_cast<std::size_t>(random.below(7)));
  double chi_squared = 0;
  for (const double count : counts) chi_squared += std::pow(count - 10000, 2) / 10000;
  EXPECT_LT(chi_squared, 22.46);  // 6 degrees of freedom, one stream in a thousand is above
}

TEST(Random, BelowReachesTheEndsOfHugeRanges) {
  Random random(12, RandomUse::kTest);
  bool upper_half = false;
  for (int i = 0; i < 100; ++i) {
    const index drawn = random.below(INT64_MAX);
    ASSERT_GE(drawn, 0);
    upper_half |= drawn > INT64_MAX / 2;
  }
  EXPECT_TRUE(upper_half);
  EXPECT_EQ(random.below(1), 0);
}

TEST(Random, BelowNothingIsAnError) {
  Random random(1, RandomUse::kTest);
  EXPECT_THROWS(random.below(0), kShape, "n must be at least 1; it is 0");
  EXPECT_THROWS(random.below(-3), kShape, "n must be at least 1; it is -3");
}

TEST(Random, UniformFillsItsIntervalEvenly) {
  Random random(5, RandomUse::kTest);
  constexpr int kDraws = 100000;
  double sum = 0;
  double squares = 0;
  for (int i = 0; i < kDraws; ++i) {
    const double x = random.uniform(-2, 4);
    ASSERT_GE(x, -2);
    ASSERT_LT(x, 4);
    sum += x;
    squares += x * x;
  }
  const double sigma = std::sqrt(3.0 / kDraws);
  EXPECT_NEAR(sum / kDraws, 1, 4 * sigma);
  EXPECT_NEAR(squares / kDraws, 4, 0.06);
}

TEST(Random, NormalHasTheMomentsOfANormal) {
  Random random(6, RandomUse::kTest);
  constexpr int kDraws = 100000;
  double moments[5] = {};
  for (int i = 0; i < kDraws; ++i) {
    const double x = random.normal();
    ASSERT_TRUE(std::isfinite(x));
    for (int k = 1; k <= 4; ++k) moments[k] += std::pow(x, k) / kDraws;
  }
  const double sigma = 1 / std::sqrt(kDraws);
  EXPECT_NEAR(moments[1], 0, 4 * sigma);
  EXPECT_NEAR(moments[2], 1, 4 * sigma * std::sqrt(2));
  EXPECT_NEAR(moments[3], 0, 4 * sigma * std::sqrt(15));
  EXPECT_NEAR(moments[4], 3, 4 * sigma * std::sqrt(96));
}

}  // namespace
}  // namespace fovea
