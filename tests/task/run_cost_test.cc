// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include "fovea/model/language_model.h"
#include "fovea/task/run_flow.h"

namespace fovea {
namespace {

TEST(RunCost, OfTrainingAddUp) {
  constexpr double kMany = 1e12;
  const TrainingBytes bytes{
      .model = kMany, .values = kMany, .state = 2 * kMany, .gradients = kMany};
  EXPECT_GT(peak_of_training(bytes, 0), 4 * kMany);
  EXPECT_LT(peak_of_training(bytes, 0), 4.1 * kMany);
  EXPECT_GT(peak_of_training(bytes, 1), 7 * kMany) << "the checkpoint is read whole";
  EXPECT_GT(peak_of_training({.passes = kMany, .records = kMany}, 0), 2 * kMany);
}

TEST(RunCost, OfRecordsGrowWithUpdatesAndHeads) {
  TrainOptions recipe;
  const double plain = record_bytes(recipe, 1000, {2, 4});
  EXPECT_NEAR(record_bytes(recipe, 2000, {2, 4}), 2 * plain, 1);
  recipe.observe_every = 10;
  EXPECT_GT(record_bytes(recipe, 1000, {2, 4}), plain);
  EXPECT_EQ(vocabulary_bytes(nullptr), 0);
}

// By hand: 100 values beside the tables. Of the first table 5 rows of 3 are held, and half as many
// again while they grow, with two numbers for each of its 20 rows; of the second all 4 rows.
TEST(RunCost, TablesHaveGradientsOfTheirUsedRows) {
  const UsedTable tables[] = {{.rows = 20, .width = 3, .used = 5},
                              {.rows = 4, .width = 10, .used = 9}};
  constexpr OptimizerKind kByRows = OptimizerKind::kAdamW;
  EXPECT_EQ(gradient_bytes(kByRows, 200, tables),
            4 * (100 + (7.5 + 5) * 3 + 2 * 20 + (4 + 4) * 10 + 2 * 4));
  EXPECT_EQ(gradient_bytes(OptimizerKind::kLion, 200, tables), 4 * 200);
  const UsedTable frozen[] = {{.rows = 20, .width = 3, .used = 5, .frozen = true}};
  EXPECT_EQ(gradient_bytes(kByRows, 100, frozen), 4 * 40);
  EXPECT_EQ(gradient_bytes(OptimizerKind::kLion, 100, frozen), 4 * 40);
}

TEST(RunCost, ObservedHeadsAreThoseOfTheLayersWithAttention) {
  LanguageModelConfig c;
  c.kind = LanguageModelKind::kEncoder;
  c.vocabulary = 3;
  c.position = PositionKind::kNone;
  c.encoder = "conv3,attention:heads=8:layers=2,lstm:layers=3,attention-rnn:heads=2";
  const ObservedHeads heads = observed_heads(sized_stages(resolve(c)));
  EXPECT_EQ(heads.layers, 3);
  EXPECT_EQ(heads.heads, 18);
}

TEST(RunCost, ReckonWhatDoesNotFit) {
  TrainOptions recipe;
  const TimedRun run{.recipe = recipe,
                     .parameters = 10,
                     .flops_of_update = [] { return 1e9; },
                     .updates_to_come = [] { return 10.0; },
                     .fits = [] { return false; },
                     .with_objective = [](const auto&) { FAIL() << "it must not be made"; }};
  const RunTime time = estimate_time(Context(1), run, {});
  EXPECT_THAT(time.basis, testing::HasSubstr("GFLOP/s"));
  EXPECT_GT(time.seconds, 0);
  recipe.stop_after = "1h";
  EXPECT_EQ(estimate_time(Context(1), run, {.seconds = 600}).seconds, 3000);
}

TEST(RunCost, CountEvaluationsAfterThoseThatWereDone) {
  TrainOptions recipe;
  recipe.eval_every = "10u";
  EXPECT_EQ(evaluations_to_come(recipe, 95, 7, 0), 10);  // the last one at the end
  EXPECT_EQ(evaluations_to_come(recipe, 95, 7, 25), 8);
  EXPECT_EQ(evaluations_to_come(recipe, 95, 7, 200), 0);
  recipe.eval_every = "1e";
  EXPECT_EQ(evaluations_to_come(recipe, 21, 7, 7), 2);
}

TEST(RunCost, GroupsOfLengthsStandForAll) {
  const LengthGroups few({9, 1, 4, 2, 1});
  EXPECT_THAT(few.means_of({9, 1, 4, 2, 1}), testing::ElementsAre(1, 1, 2, 4, 9));
  EXPECT_THAT(few.means_of({5, 0, 3, 2, 1}), testing::ElementsAre(1, 1, 2, 3, 5)) << "of another";
  const LengthGroups long_ones({1 << 19, 1 << 18, 1 << 18});
  EXPECT_THAT(long_ones.means_of({1 << 19, 1 << 18, 1 << 18}), testing::SizeIs(1));
  EXPECT_THAT(LengthGroups(std::vector<index>(1000, 7)).means_of(std::vector<index>(1000, 3)),
              testing::Each(3));
  EXPECT_THAT(LengthGroups({}).means_of({}), testing::ElementsAre(1));
}

}  // namespace
}  // namespace fovea
