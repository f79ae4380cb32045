// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include "fovea/task/setting_parts.h"
#include "tests/support/throws.h"
#include "tests/task/classify/tiny.h"

namespace fovea {
namespace {

TEST(SameClassifierRun, FixesModelAndTexts) {
  const TestFolder folder;
  const ClassifierRun run = prepare_run(tiny_classifier(folder));
  const ClassifierSettings began = run.settings;
  ClassifierSettings given = tiny_classifier(folder);  // with what follows from the texts
  EXPECT_NO_THROW(require_same_run(began, given));
  given.recipe.lr = 1;
  EXPECT_THAT(changed_options(began, given), testing::ElementsAre(testing::HasSubstr("--lr")));
  given = began;
  given.model.width = 16;
  given.model.head_dim = given.model.ff = 0;
  EXPECT_THROWS(require_same_run(began, given), kConfig, "cannot resume");
  given = began;
  given.text.lower = false;
  EXPECT_THROWS(require_same_run(began, given), kConfig, "--lower");
  given = began;
  given.text.metric = ClassifierMetric::kLoss;
  EXPECT_THROWS(require_same_run(began, given), kConfig, "--metric");
  EXPECT_NO_THROW(require_same_text(began, run.identity, run));
  write_file(folder, "reviews.tsv", tiny_reviews() + "good\tA film.\n");
  EXPECT_THROWS(require_same_text(began, run.identity, prepare_run(began)), kConfig,
                "the text has changed");
}

}  // namespace
}  // namespace fovea
