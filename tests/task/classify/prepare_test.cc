// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include "tests/support/throws.h"
#include "tests/task/classify/tiny.h"

namespace fovea {
namespace {

using testing::Contains;
using testing::HasSubstr;

TEST(PrepareClassifier, FillsInWhatFollowsFromTheTexts) {
  const TestFolder folder;
  const ClassifierRun run = prepare_run(tiny_classifier(folder));
  EXPECT_EQ(run.settings.text.tokenizer, "word");
  EXPECT_EQ(run.settings.text.max_length, 7);
  EXPECT_EQ(run.settings.model.block, 7);
  EXPECT_EQ(run.settings.model.classes, 2);
  EXPECT_EQ(run.training->examples().size(), 54);
  EXPECT_EQ(run.validation.value().examples().size(), 6);
  EXPECT_THAT(run.overview, Contains("classes: 2; bad 27 (50.0 %), good 27 (50.0 %)"));
}

TEST(PrepareClassifier, ChoosesTheTask) {
  const TestFolder folder;
  const auto task_of = [&](std::string_view text, auto change) {
    ClassifierSettings settings = tiny_classifier(folder);
    settings.text.train = {write_file(folder, "t.tsv", text)};
    settings.text.valid_fraction = 0;
    settings.text.min_count = 1;
    change(settings.text);
    const ClassifierRun run = prepare_run(settings);
    return std::string(to_string(run.settings.model.task)) + " " +
           std::to_string(run.settings.model.classes);
  };
  EXPECT_EQ(task_of("1\tx y\n2\ty z\n3\tz x\n", [](auto&) {}), "single-label 3");
  EXPECT_EQ(task_of("1\tx y\n2\ty z\n", [](auto& t) { t.multi_label = true; }), "multi-label 2");
  EXPECT_EQ(task_of("1\tx y\n2\ty z\n", [](auto& t) { t.regression = true; }), "regression 1");
}

TEST(PrepareClassifier, ScalesNumbers) {
  const TestFolder folder;
  ClassifierSettings settings = tiny_classifier(folder);
  settings.text.train = {write_file(folder, "n.tsv", "100\tx x\n300\ty y\n")};
  settings.text.valid_fraction = 0;
  settings.text.regression = true;
  const ClassifierRun run = prepare_run(settings);
  EXPECT_EQ(run.outputs.numbers.center, 200);
  EXPECT_EQ(run.outputs.numbers.scale, 100);
  EXPECT_THAT(run.training->examples().numbers, testing::ElementsAre(-1, 1));
}

TEST(PrepareClassifier, NamesDataByWhatIsTrained) {
  const TestFolder folder;
  const ClassifierSettings settings = tiny_classifier(folder);
  const std::string data = prepare_run(settings).identity.data;
  EXPECT_EQ(prepare_run(settings).identity.data, data);
  write_file(folder, "reviews.tsv", tiny_reviews() + "good\tA film.\n");
  EXPECT_NE(prepare_run(settings).identity.data, data);
}

}  // namespace
}  // namespace fovea
