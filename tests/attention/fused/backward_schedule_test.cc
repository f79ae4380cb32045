// SPDX-License-Identifier: Apache-2.0
// Which units of the backward run side by side.
#include "fovea/attention/fused/backward_schedule.h"

#include <gmock/gmock.h>

#include <utility>
#include <vector>

#include "fovea/attention/attention.h"

namespace fovea::detail {
namespace {

std::vector<Sequence> batch(index B) {
  std::vector<Sequence> sequences;
  for (index b = 0; b < B; ++b) {
    sequences.push_back({.number = b, .batch = b, .queries = 10, .keys = 300 * b});
  }
  return sequences;
}

using Units = std::vector<std::pair<index, index>>;  // numbers of sequence and group

std::vector<Units> waves_of(const std::vector<Sequence>& sequences, const SharedGradient& shared) {
  const BackwardUnits units = make_units(sequences, 4, 2, shared);
  std::vector<Units> waves;
  for (const Span& wave : units.waves) {
    waves.emplace_back();
    for (index n = wave.begin; n < wave.end; ++n) {
      const BackwardUnit& unit = units.all[static_cast<std::size_t>(n)];
      waves.back().emplace_back(unit.sequence->number, unit.group);
    }
  }
  return waves;
}

TEST(BackwardUnits, ThoseThatShareAGradientRunOneAfterAnother) {
  const Units first = {{0, 0}, {0, 1}}, second = {{1, 0}, {1, 1}};
  const auto sequences = batch(2);
  EXPECT_THAT(waves_of(sequences, {}),
              ::testing::ElementsAre(Units{{0, 0}, {0, 1}, {1, 0}, {1, 1}}));
  EXPECT_THAT(waves_of(sequences, {.batch = true}), ::testing::ElementsAre(first, second));
  EXPECT_THAT(waves_of(sequences, {.heads = true}),
              ::testing::ElementsAre(Units{{0, 0}, {1, 0}}, Units{{0, 1}, {1, 1}}));
  EXPECT_THAT(waves_of(sequences, {.batch = true, .heads = true}),
              ::testing::ElementsAre(Units{{0, 0}}, Units{{0, 1}}, Units{{1, 0}}, Units{{1, 1}}));
}

TEST(BackwardUnits, PackedSequencesShareNothing) {
  const std::vector<Sequence> packed = {{.number = 0, .queries = 10, .keys = 10},
                                        {.number = 1, .query_row = 10, .key_row = 10}};
  EXPECT_EQ(waves_of(packed, {.batch = true}).size(), 1u);
}

TEST(BackwardUnits, AreGroupsOfHeadsCutIntoChunksOfKeys) {
  const auto sequences = batch(3);
  const BackwardUnits units = make_units(sequences, 6, 2, {});
  std::vector<index> chunks, heads;
  for (const BackwardUnit& unit : units.all) {
    chunks.push_back(unit.chunks());
    heads.push_back(unit.heads());
  }
  EXPECT_THAT(chunks, ::testing::ElementsAre(1, 1, 2, 2, 3, 3)) << "of 0, 300 and 600 keys";
  EXPECT_THAT(heads, ::testing::ElementsAre(3, 3, 3, 3, 3, 3));
}

TEST(BackwardUnits, NoSequenceIsNoWave) { EXPECT_TRUE(waves_of({}, {.batch = true}).empty()); }

// A bias shares what any of its parts shares.
TEST(BackwardUnits, PartsShareTogether) {
  std::vector<float> x(10), dx(10);
  const auto view = [](std::vector<float>& values, index B, index H) {
    return ScoreView<float>::contiguous(values.data(), B, H, 1, 1);
  };
  const bias::Dense<float> by_heads(view(x, 2, 1), view(dx, 2, 1)), constant(view(x, 1, 1));
  const bias::Dense<float> by_batch(view(x, 1, 3), view(dx, 1, 3));
  EXPECT_TRUE(shared_gradient<float>(by_heads + by_batch).batch);
  EXPECT_TRUE(shared_gradient<float>(by_heads + by_batch).heads);
  EXPECT_FALSE(shared_gradient<float>(by_heads + constant).batch);
  EXPECT_FALSE(shared_gradient<float>({}).heads);
}

}  // namespace
}  // namespace fovea::detail
