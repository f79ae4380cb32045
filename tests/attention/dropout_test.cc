// SPDX-License-Identifier: Apache-2.0
#include "fovea/attention/dropout.h"

#include <gtest/gtest.h>

#include "fovea/base/random.h"

namespace fovea::testing {
namespace {

// The documented counter: (i, j / 8, stream), word (j % 8) / 2, half j % 2.
TEST(Dropout, BitsAreHalvesOfPhiloxWords) {
  const Sequence sequence{.number = 3, .queries = 9, .keys = 40};
  const DropoutStream stream = dropout_stream({.seed = 1, .step = 2, .layer = 3}, sequence, 4);
  const PhiloxCounter step =
      philox4x32({2, 0, 3, static_cast<std::uint32_t>(RandomUse::kDropout)}, {1, 0});
  const PhiloxCounter folded = philox4x32({3, 0, 4, step[2]}, {step[0], step[1]});
  const PhiloxCounter words = philox4x32({7, 21 / 8, folded[2], folded[3]}, {folded[0], folded[1]});
  EXPECT_EQ(dropout_bits(stream, 7, 21), words[2] >> 16);
  EXPECT_EQ(dropout_bits(stream, 7, 20), words[2] & 0xFFFF);
}

TEST(Dropout, ItsProbabilityIsExact) {
  for (const double p : {0.0, 1e-9, 1e-6, 0.1, 0.25, 1.0 / 3, 0.5, 0.9, 0.999999, 1 - 1e-12}) {
    const DropoutRule rule = dropout_rule({.probability = p});
    const double probability = (rule.threshold + rule.rest / 4294967296.0) / 65536;
    EXPECT_NEAR(probability, p, 0x1p-48);
    EXPECT_EQ(rule.keep_scale, 1 / (1 - p));
    EXPECT_EQ(rule.active(), p > 0);
  }
  EXPECT_EQ(dropout_rule({.probability = 0.5}).rest, 0u);
}

// Where the sixteen bits are the threshold, 32 more decide: in the share that is left over.
TEST(Dropout, TiesAreDroppedInProportion) {
  const Sequence sequence{.queries = 3000, .keys = 3000};
  const DropoutStream stream = dropout_stream({.seed = 1}, sequence, 0);
  const DropoutRule rule = dropout_rule({.probability = 100.75 / 65536});
  index ties = 0, dropped = 0;
  for (index i = 0; i < sequence.queries; ++i) {
    for (index j = 0; j < sequence.keys; ++j) {
      const std::uint32_t bits = dropout_bits(stream, i, j);
      if (bits != 100) {
        ASSERT_EQ(drops(rule, stream, i, j), bits < 100);
        continue;
      }
      ++ties;
      dropped += drops(rule, stream, i, j) ? 1 : 0;
    }
  }
  EXPECT_NEAR(static_cast<double>(ties), 9e6 / 65536, 50);
  EXPECT_NEAR(static_cast<double>(dropped), 0.75 * static_cast<double>(ties), 25);
}

}  // namespace
}  // namespace fovea::testing
