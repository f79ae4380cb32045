// SPDX-License-Identifier: Apache-2.0
#include "fovea/attention/sequences.h"

#include <gmock/gmock.h>

#include "tests/attention/support/call.h"
#include "tests/support/throws.h"

namespace fovea::testing {
namespace {

TEST(Sequences, LengthsCutAndOffsetsPlace) {
  const std::int32_t lengths[] = {4, 0}, queries[] = {0, 2, 2, 3}, keys[] = {0, 1, 4, 5};
  const Call<float> padded({.B = 2, .T = 3, .S = 5, .H = 2});
  const auto cut = make_sequences<float>({.mask = mask::KeyLengths({lengths, 2})}, padded.in());
  ASSERT_EQ(cut.size(), 2u);
  EXPECT_EQ(cut[0].keys, 4);
  EXPECT_EQ(cut[0].position(2), 3) << "the last query sees the last key";
  EXPECT_EQ(cut[1].keys, 0);
  EXPECT_EQ(cut[1].batch, 1);
  const Call<float> packed({.T = 3, .S = 5, .H = 2});
  const auto placed = make_sequences<float>({.packed = {{queries, 4}, {keys, 4}}}, packed.in());
  ASSERT_EQ(placed.size(), 3u);
  EXPECT_EQ(placed[1].queries, 0);
  EXPECT_EQ(placed[2].query_row, 2);
  EXPECT_EQ(placed[2].key_row, 4);
  EXPECT_EQ(placed[2].number, 2);
  EXPECT_EQ(placed[2].batch, 0);
}

// Makes every sequence one key longer.
class Longer final : public MaskPart {
 public:
  bool keeps(const ScoreSite&) const override { return true; }
  void limit(Sequence& sequence) const override { ++sequence.keys; }
  std::string name() const override { return "longer"; }
};

TEST(Sequences, AMaskMayNotLengthenThem) {
  Call<float> call({.T = 3, .S = 5});
  EXPECT_THROWS(call.forward({.mask = Longer()}), kShape, "the longer mask may only shorten");
}

// Keeps the sizes that it is told.
class Told final : public MaskPart {
 public:
  explicit Told(AttentionSizes* sizes) : sizes_(sizes) {}
  bool keeps(const ScoreSite&) const override { return true; }
  void check_shape(const AttentionSizes& sizes) const override { *sizes_ = sizes; }
  std::string name() const override { return "told"; }

 private:
  AttentionSizes* sizes_;
};

TEST(Sequences, PartsAreToldEverySize) {
  Call<float> call({.B = 2, .T = 3, .S = 5, .H = 6, .G = 3, .D = 7, .Dv = 4});
  AttentionSizes told{};
  call.forward({.mask = Told(&told)});
  const auto [B, T, S, H, G, D, Dv] = told;
  EXPECT_THAT((std::array{B, T, S, H, G, D, Dv}), ::testing::ElementsAre(2, 3, 5, 6, 3, 7, 4));
}

TEST(Sequences, HeadsShareGroupsInOrder) {
  for (index H = 1; H <= 12; ++H) {
    for (index G = 1; G <= H; ++G) {
      if (H % G != 0) continue;
      for (index h = 0; h < H; ++h) {
        const index g = group_of(h, H, G);
        EXPECT_LE(first_head(g, H, G), h);
        EXPECT_GT(first_head(g + 1, H, G), h);
      }
    }
  }
}

// The documented counter: (i, j / 8, stream), word (j % 8) / 2, half j % 2.
TEST(Sequences, DropoutBitsAreHalvesOfPhiloxWords) {
  const Sequence sequence{.number = 3, .queries = 9, .keys = 40};
  const DropoutStream stream = dropout_stream({.seed = 1, .step = 2, .layer = 3}, sequence, 4);
  const PhiloxCounter step =
      philox4x32({2, 0, 3, static_cast<std::uint32_t>(RandomUse::kDropout)}, {1, 0});
  const PhiloxCounter folded = philox4x32({3, 0, 4, step[2]}, {step[0], step[1]});
  const PhiloxCounter words = philox4x32({7, 21 / 8, folded[2], folded[3]}, {folded[0], folded[1]});
  EXPECT_EQ(dropout_bits(stream, 7, 21), words[2] >> 16);
  EXPECT_EQ(dropout_bits(stream, 7, 20), words[2] & 0xFFFF);
}

TEST(Sequences, TheProbabilityOfDropoutIsExact) {
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
TEST(Sequences, TiesAreDroppedInProportion) {
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
