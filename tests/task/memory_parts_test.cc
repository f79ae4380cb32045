// SPDX-License-Identifier: Apache-2.0
#include "fovea/task/memory_parts.h"

#include <gtest/gtest.h>

#include "fovea/model/language_model_stages.h"

namespace fovea {
namespace {

TEST(MemoryParts, OfTrainingAddUp) {
  constexpr double kMany = 1e12;
  EXPECT_GT(peak_of_training({.model = kMany, .values = kMany, .gradients = kMany}, 0), 7 * kMany);
  EXPECT_GT(peak_of_training({.passes = kMany, .records = kMany}, 0), 2 * kMany);
}

TEST(MemoryParts, OfRecordsGrowWithUpdatesAndHeads) {
  TrainOptions recipe;
  const double plain = record_bytes(recipe, 1000, {2, 4});
  EXPECT_NEAR(record_bytes(recipe, 2000, {2, 4}), 2 * plain, 1);
  recipe.observe_every = 10;
  EXPECT_GT(record_bytes(recipe, 1000, {2, 4}), plain);
  EXPECT_EQ(vocabulary_bytes(nullptr), 0);
}

// By hand: 100 values beside the tables. Of the first table 5 rows of 3 are held, and half as many
// again while they grow, with two numbers for each of its 20 rows; of the second all 4 rows.
TEST(MemoryParts, TablesHaveGradientsOfTheirUsedRows) {
  const UsedTable tables[] = {{.rows = 20, .width = 3, .used = 5},
                              {.rows = 4, .width = 10, .used = 9}};
  EXPECT_EQ(gradient_bytes(200, tables), 4 * (100 + (7.5 + 5) * 3 + 2 * 20 + (4 + 4) * 10 + 2 * 4));
  const UsedTable frozen[] = {{.rows = 20, .width = 3, .used = 5, .frozen = true}};
  EXPECT_EQ(gradient_bytes(100, frozen), 4 * 40);
}

TEST(MemoryParts, ObservedHeadsAreThoseOfTheLayersWithAttention) {
  LanguageModelConfig c;
  c.kind = LanguageModelKind::kEncoder;
  c.vocabulary = 3;
  c.position = PositionKind::kNone;
  c.encoder = "conv3,attention:heads=8:layers=2,lstm:layers=3,attention-rnn:heads=2";
  const ObservedHeads heads = observed_heads(sized_stages(resolve(c)));
  EXPECT_EQ(heads.layers, 3);
  EXPECT_EQ(heads.heads, 18);
}

}  // namespace
}  // namespace fovea
