// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include "fovea/task/setting_parts.h"
#include "tests/support/throws.h"
#include "tests/task/tiny.h"

namespace fovea {
namespace {

class SameRun : public testing::Test {
 protected:
  template <class Change>
  LanguageModelSettings with(Change change) const {
    LanguageModelSettings other = began;
    change(other);
    return other;
  }

  const TestFolder folder;
  const LanguageModelRun run = prepare_run(tiny_settings(folder));
  const LanguageModelSettings& began = run.settings;
};

TEST_F(SameRun, MayChangeItsRecipe) {
  EXPECT_NO_THROW(require_same_run(began, began));
  EXPECT_NO_THROW(require_same_run(began, with([](auto& s) {
                                     s.recipe.lr = 1;
                                     s.recipe.stop_after = "9e";
                                     s.text.batch_size = 9;
                                   })));
}

TEST_F(SameRun, NamesTheOptionsThatDecideUpdatesAndHaveChanged) {
  EXPECT_THAT(changed_options(began, began), testing::IsEmpty());
  const auto changed = [&](ScheduleKind schedule) {
    LanguageModelSettings checkpoint = began;
    checkpoint.recipe.schedule = schedule;
    LanguageModelSettings given = checkpoint;
    given.recipe.lr = 0.25;
    given.text.batch_size = 9;
    given.recipe.stop_after = "9e";
    given.recipe.keep = 7;
    given.recipe.patience = 3;
    return changed_options(checkpoint, given);
  };
  const auto batch = "--batch-size: the checkpoint has 4; from now on it is 9";
  const auto lr = "--lr: the checkpoint has 0.001; from now on it is 0.25";
  const auto end = "--stop-after: the checkpoint has 30u; from now on it is 9e";
  EXPECT_THAT(changed(ScheduleKind::kConstant), testing::UnorderedElementsAre(batch, lr));
  EXPECT_THAT(changed(ScheduleKind::kInverseSqrt), testing::UnorderedElementsAre(batch, lr));
  EXPECT_THAT(changed(ScheduleKind::kCosine), testing::UnorderedElementsAre(batch, lr, end));
  EXPECT_THAT(changed(ScheduleKind::kLinear), testing::UnorderedElementsAre(batch, lr, end));
  EXPECT_THAT(changed(ScheduleKind::kWsd), testing::UnorderedElementsAre(batch, lr, end));
}

TEST_F(SameRun, SizesThatFollowAreTheSameSaidOrNot) {
  EXPECT_EQ(began.model.ff, 64);
  EXPECT_NO_THROW(
      require_same_run(began, with([](auto& s) { s.model.ff = s.model.kv_heads = 0; })));
}

TEST_F(SameRun, NamesTheOptionAndBothValues) {
  EXPECT_THROWS(require_same_run(began, with([](auto& s) { s.model.layers = 3; })), kConfig,
                "cannot resume: --layers: the run began with 1, given is 3");
  EXPECT_THROWS(require_same_run(began, with([](auto& s) { s.model.compat = "all"; })), kConfig,
                "--compat: the run began with none, given is all");
  EXPECT_THROWS(require_same_run(began, with([](auto& s) { s.model.norm = NormKind::kRms; })),
                kConfig, "--norm: the run began with layer, given is rms");
  EXPECT_THROWS(require_same_run(began, with([](auto& s) { s.text.tokenizer = "byte"; })), kConfig,
                "--tokenizer: the run began with char, given is byte");
  EXPECT_THROWS(require_same_run(began, with([](auto& s) { s.text.data = "lines"; })), kConfig,
                "--data: the run began with blocks, given is lines");
  EXPECT_THROWS(require_same_run(began, with([](auto& s) { s.text.valid_fraction = 0.5; })),
                kConfig, "--valid-fraction: the run began with 0.1, given is 0.5");
  const auto error =
      error_of([&] { require_same_run(began, with([](auto& s) { s.model.width = 32; })); });
  ASSERT_TRUE(error);
  EXPECT_EQ(error->hint(), "leave --width out, or train into another folder");
}

TEST_F(SameRun, TextIsKnownByWhatItHoldsNotByItsName) {
  EXPECT_NO_THROW(require_same_text(began, run.identity, run));
  LanguageModelSettings settings = tiny_settings(folder);
  std::filesystem::copy_file(folder / "text.txt", folder / "copy.txt");
  settings.text.train = {(folder / "copy.txt").string()};
  EXPECT_NO_THROW(require_same_text(began, run.identity, prepare_run(settings)));

  std::ofstream(folder / "copy.txt", std::ios::app) << "one more line\n";
  EXPECT_THROWS(require_same_text(began, run.identity, prepare_run(settings)), kConfig,
                "--train: the run began with " + began.text.train[0] + ", given is " +
                    settings.text.train[0]);

  settings.text.train = began.text.train;
  std::ofstream(folder / "text.txt", std::ios::app) << "one more line\n";
  EXPECT_THROWS(require_same_text(began, run.identity, prepare_run(settings)), kConfig,
                began.text.train[0] + ": the text has changed since the run began");

  settings = tiny_settings(folder);
  settings.text.valid = {(folder / "copy.txt").string()};
  EXPECT_THROWS(require_same_text(began, run.identity, prepare_run(settings)), kConfig,
                "--valid: the run began with no file, given is " + settings.text.valid[0]);
}

// What a text's tokens are, and how lines are cut.
TEST_F(SameRun, KeepsItsTokensAndTheLengthOfItsLines) {
  EXPECT_THROWS(require_same_run(began, with([](auto& s) { s.text.lower = true; })), kConfig,
                "--lower: the run began with false, given is true");
  EXPECT_THROWS(require_same_run(began, with([](auto& s) { s.text.min_count = 3; })), kConfig,
                "--min-count: the run began with 2, given is 3");
  EXPECT_THROWS(require_same_run(began, with([](auto& s) { s.text.marks = false; })), kConfig,
                "--marks: the run began with true, given is false");
  EXPECT_THROWS(require_same_run(began, with([](auto& s) { s.text.max_length = 9; })), kConfig,
                "--max-length: the run began with 0, given is 9");
  EXPECT_THROWS(require_same_run(began, with([](auto& s) { s.text.truncate = Truncate::kFront; })),
                kConfig, "--truncate: the run began with end, given is front");
  EXPECT_THROWS(require_same_run(began, with([](auto& s) { s.text.vocabulary = "/v.txt"; })),
                kConfig, "--vocabulary: the run began with none, given is /v.txt");
}

}  // namespace
}  // namespace fovea
