// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include <limits>

#include "fovea/attention/call.h"
#include "tests/attention/support/call.h"
#include "tests/support/throws.h"

namespace fovea::testing {
namespace {

TEST(Sequences, LengthsCutAndOffsetsPlace) {
  const std::int32_t lengths[] = {4, 0}, queries[] = {0, 2, 2, 3}, keys[] = {0, 1, 4, 5};
  const Call<float> padded({.B = 2, .T = 3, .S = 5, .H = 2});
  const auto cut =
      detail::make_sequences<float>({.mask = mask::KeyLengths({lengths, 2})}, padded.in());
  ASSERT_EQ(cut.size(), 2u);
  EXPECT_EQ(cut[0].keys, 4);
  EXPECT_EQ(cut[0].position(2), 3) << "the last query sees the last key";
  EXPECT_EQ(cut[1].keys, 0);
  EXPECT_EQ(cut[1].batch, 1);
  const Call<float> packed({.T = 3, .S = 5, .H = 2});
  const auto placed =
      detail::make_sequences<float>({.packed = {{queries, 4}, {keys, 4}}}, packed.in());
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
        const index g = detail::group_of(h, H, G);
        EXPECT_LE(detail::first_head(g, H, G), h);
        EXPECT_GT(detail::first_head(g + 1, H, G), h);
      }
    }
  }
}

TEST(Sequences, RowsOfNoneAreCleared) {
  Call<float> call({.B = 2, .T = 3, .S = 4, .H = 2, .G = 1, .D = 2, .Dv = 1});
  const std::vector<Sequence> sequences = {{.batch = 0, .queries = 2, .keys = 1},
                                           {.batch = 1, .queries = 0, .keys = 4}};
  detail::clear_uncovered(sequences, call.out());
  detail::clear_uncovered(sequences, call.gradients());
  const float old = -77, none = -std::numeric_limits<float>::infinity();
  EXPECT_EQ(call.o, (std::vector<float>{old, old, old, old, 0, 0, 0, 0, 0, 0, 0, 0}));
  EXPECT_EQ(call.lse, (std::vector<float>{old, old, none, old, old, none, none, none, none, none,
                                          none, none}));
  EXPECT_EQ(call.dv, (std::vector<float>{old, 0, 0, 0, old, old, old, old}));
  EXPECT_EQ(call.dq[7], old);
  EXPECT_EQ(call.dq[8], 0);
}

}  // namespace
}  // namespace fovea::testing
