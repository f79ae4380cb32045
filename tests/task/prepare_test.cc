// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include "tests/support/throws.h"
#include "tests/task/tiny.h"

namespace fovea {
namespace {

TEST(Prepare, ReadsLearnsAndFillsIn) {
  const TestFolder folder;
  const LanguageModelRun run = prepare_run(tiny_settings(folder));
  EXPECT_EQ(run.settings.model.vocabulary, run.tokenizer->vocabulary_size());
  EXPECT_EQ(run.settings.model.head_dim, 8);
  EXPECT_EQ(run.settings.model.ff, 64);
  EXPECT_EQ(run.text_bytes, tiny_text().size());
  ASSERT_TRUE(run.validation);
  EXPECT_NEAR(static_cast<double>(run.validation->sequences().target_count()),
              0.1 * static_cast<double>(tiny_text().size()), 2);
}

TEST(Prepare, WithoutAFractionNothingValidates) {
  const TestFolder folder;
  LanguageModelSettings settings = tiny_settings(folder);
  settings.text.valid_fraction = 0;
  EXPECT_FALSE(prepare_run(settings).validation);
}

TEST(Prepare, NotesARunThatEndsBeforeItsWarmUp) {
  const TestFolder folder;
  LanguageModelSettings settings = tiny_settings(folder);
  settings.recipe.warmup = 30;
  EXPECT_THAT(prepare_run(settings).notes, testing::IsEmpty());
  settings.recipe.warmup = 31;
  EXPECT_THAT(prepare_run(settings).notes,
              testing::ElementsAre(testing::StartsWith("the run ends at update 30, before")));
  settings.recipe.stop_after = "1h";
  EXPECT_THAT(prepare_run(settings).notes, testing::IsEmpty());
}

// What makes another run is seen.
TEST(Prepare, IdentityIsThatOfTheRun) {
  const TestFolder folder;
  const LanguageModelSettings settings = tiny_settings(folder);
  const RunIdentity base = prepare_run(settings).identity;
  const auto changed = [&](auto change) {
    LanguageModelSettings other = settings;
    change(other);
    return prepare_run(other).identity;
  };
  EXPECT_NE(changed([](auto& s) { s.model.width = 32; }).model, base.model);
  EXPECT_EQ(changed([](auto& s) { s.text.batch_size = 5; }).data, base.data);
  EXPECT_NE(changed([](auto& s) { s.text.data = "lines"; }).data, base.data);
  EXPECT_NE(changed([](auto& s) { s.text.valid_fraction = 0.2; }).data, base.data);
  EXPECT_NE(changed([](auto& s) { s.text.tokenizer = "byte"; }).tokenizer, base.tokenizer);
}

TEST(Prepare, SizesAreCheckedBeforeAnyFileIsRead) {
  const TestFolder folder;
  LanguageModelSettings settings = tiny_settings(folder);
  settings.text.train = {"nowhere.txt"};
  EXPECT_THROWS(prepare_run(settings), kMissingInput, "nowhere.txt");
  settings.model.heads = 3;
  EXPECT_THROWS(prepare_run(settings), kShape, "3");
}

TEST(Prepare, CostCountsWhatTheModelHas) {
  const TestFolder folder;
  LanguageModelSettings settings = tiny_settings(folder);
  settings.recipe.accumulate = 3;
  const LanguageModelRun run = prepare_run(settings);
  const RunCost cost = cost_of(run);
  const LanguageModel model(run.settings.model, 1);
  index parameters = 0;
  for (const Parameter* p : model.parameters()) parameters += p->value.size();
  EXPECT_EQ(cost.parameters, parameters);
  EXPECT_EQ(cost.updates, 30);
  EXPECT_EQ(cost.tokens_per_update, 4 * 12 * 3);
  EXPECT_NEAR(cost.flops_per_update,
              flops_per_token(run.settings.model) * static_cast<double>(cost.tokens_per_update), 1);
}

}  // namespace
}  // namespace fovea
