// SPDX-License-Identifier: Apache-2.0
// E8: the data that it needs, and its runs on a few sentences that a program makes.
#include "experiments/tag.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "fovea/base/file.h"
#include "tests/experiments/support.h"
#include "tests/support/folder.h"
#include "tests/support/throws.h"
#include "tests/task/tag/tiny.h"

namespace fovea {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TEST(ReproduceTag, SaysWhichFileItNeeds) {
  const TestFolder folder;
  Measured measured;
  EXPECT_THROWS(reproduce_tag(Context(1), {.data = folder.path(), .output = folder.path()},
                              measured.observer()),
                kMissingInput, "wnut17/train.conll");
}

std::string tagged_characters() {
  std::string text;
  for (int i = 0; i < 40; ++i)
    text += i % 2 == 0 ? "我们\tN\n在\tP\n北京\tN\n\n" : "他\tN\n学习\tV\n\n";
  return text;
}

std::vector<TagExperiment> tiny_experiments(const TestFolder& folder) {
  const std::string names = write_file(folder, "names.conll", tiny_sentences());
  const std::string words = write_file(folder, "words.conll", tagged_characters());
  return {{.name = "ner", .train = names, .test = names, .valid = names, .epochs = 2},
          {.name = "joint",
           .task = TagTask::kSegment,
           .joint = true,
           .train = words,
           .test = words,
           .epochs = 1}};
}

TEST(ReproduceTag, RunsEveryModelOnceAndGoesOn) {
  const TestFolder folder;
  const auto experiments = tiny_experiments(folder);
  const ReproduceOptions options{.data = {}, .output = folder.path() / "whole", .seeds = 1};
  Measured whole;
  run_tags(Context(1), options, whole.observer(), experiments);
  std::set<std::string> runs;
  for (const ReproduceRow& row : whole.rows) {
    EXPECT_EQ(row.experiment, "E8");
    if (row.metric == "seconds") continue;
    runs.insert(row.variant);
    if (row.metric == "unknown_word_recall") {
      EXPECT_FALSE(row.ours.has_value()) << "the test has no such word";
    } else {
      EXPECT_TRUE(*row.ours >= 0 && *row.ours <= 1) << row.variant << row.metric;
    }
    const std::size_t epochs = row.metric == "span_f1" ? 2 : row.metric == "tagged_word_f1" ? 1 : 0;
    EXPECT_EQ(row.by_epoch.size(), epochs) << row.variant << row.metric;
  }
  EXPECT_EQ(runs.size(), 2 * tag_models().size());
  EXPECT_TRUE(runs.contains("ner-attention-shaw-crf") && runs.contains("joint-linear-crf"));
  EXPECT_THAT(read_file(options.output / "E8-ner.svg"), HasSubstr("conv-attention"));
  // A finished run is measured again, and not repeated.
  Measured again;
  run_tags(Context(1), options, again.observer(), experiments);
  ASSERT_EQ(again.rows.size(), whole.rows.size());
  for (std::size_t i = 0; i < whole.rows.size(); ++i) {
    EXPECT_EQ(json_of_row(again.rows[i]).line(), json_of_row(whole.rows[i]).line());
  }
  EXPECT_EQ(again.asked, 0);
}

TEST(ReproduceTag, IsStoppedAndGivesTheSameNumbers) {
  const TestFolder folder;
  const auto experiments = tiny_experiments(folder);
  const auto run = [&](Measured& measured, const char* output) {
    run_tags(Context(1),
             {.data = {},
              .output = folder.path() / output,
              .seeds = 2,
              .only = "ner-bilstm-crf,joint-linear"},
             measured.observer(), experiments);
  };
  Measured whole, first, then;
  run(whole, "whole");
  first.stop_after = 9;  // updates
  EXPECT_THROW(run(first, "parts"), ReproduceStopped);
  EXPECT_LT(first.rows.size(), whole.rows.size());
  run(then, "parts");
  ASSERT_EQ(then.rows.size(), whole.rows.size());
  for (std::size_t i = 0; i < whole.rows.size(); ++i) {
    if (whole.rows[i].metric == "seconds") continue;
    EXPECT_EQ(then.rows[i].ours, whole.rows[i].ours) << whole.rows[i].variant;
  }
  EXPECT_FALSE(std::filesystem::exists(folder.path() / "parts/E8-ner-bilstm-softmax-seed1"));
}

TEST(ReproduceTag, SettingsAreThoseOfTheTable) {
  const std::vector<TagModel> models = tag_models();
  EXPECT_EQ(models.size(), 17u);
  EXPECT_EQ(models.back().variant(), "linear-crf");
  const TagExperiment experiment{.name = "ner", .train = "a", .test = "b", .epochs = 10};
  const TaggerSettings s = tag_settings(experiment, models.back(), 3, 0.5);
  EXPECT_EQ(s.recipe.stop_after, "5e");
  EXPECT_EQ(s.recipe.seed, 3u);
  EXPECT_EQ(tag_settings(experiment, models[0], 1, 0.001).recipe.stop_after, "1e");
  EXPECT_TRUE(s.model.linear && s.model.encoder.empty());
  for (const TagModel& model : models) check_options(tag_settings(experiment, model, 1, 1));
}

}  // namespace
}  // namespace fovea
