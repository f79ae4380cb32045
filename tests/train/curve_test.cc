// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include "fovea/train/run_summary.h"
#include "tests/support/folder.h"

namespace fovea {
namespace {

TEST(Curve, ShowsEveryLossThereIs) {
  const TestFolder folder;
  History history(folder / "m.jsonl");
  for (index step = 1; step <= 20; ++step) {
    history.add(
        UpdateRecord{.step = step, .loss = 4.0 / static_cast<double>(step), .mean16_loss = 3});
  }
  history.add(EvaluationRecord{.step = 20, .train_loss = 2, .valid_loss = 2.125});
  EXPECT_THAT(training_curves(history, "nats per token"),
              testing::AllOf(testing::StartsWith("<"), testing::HasSubstr("</svg>"),
                             testing::HasSubstr("2.125")));
}

TEST(Curve, ShowsHeadsBelowTheLosses) {
  const TestFolder folder;
  History history(folder / "m.jsonl");
  history.add(AttentionRecord{
      .step = 5, .entropy = {{1}, {2}}, .max_logit = {{3}, {4}}, .distance = {{5}, {6}}});
  const std::string page = training_curves(history, "nats per token");
  for (const char* text :
       {"entropy of the attention", "largest score", "mean distance", "layer 1"}) {
    EXPECT_THAT(page, testing::HasSubstr(text));
  }
  History without(folder / "n.jsonl");
  without.add(AttentionRecord{.step = 5, .max_logit = {{3}, {4}}});
  EXPECT_THAT(training_curves(without, "nats per token"),
              testing::Not(testing::HasSubstr("entropy")));
}

TEST(Curve, LeavesOutHeadsOfAnotherModel) {
  const TestFolder folder;
  History history(folder / "m.jsonl");
  history.add(AttentionRecord{.step = 1, .max_logit = {{1, 2}, {3}, std::vector<double>(5000, 4)}});
  history.add(AttentionRecord{.step = 2, .max_logit = {{1, 2}, {3, 4}}});
  const std::string page = training_curves(history, "nats per token");
  EXPECT_THAT(page, testing::HasSubstr("layer 2, head 2"));
  EXPECT_THAT(page, testing::Not(testing::HasSubstr("head 3")));
  EXPECT_THAT(page, testing::Not(testing::HasSubstr("layer 3")));
}

TEST(Curve, OfNothingIsStillAPicture) {
  const TestFolder folder;
  EXPECT_THAT(training_curves(History(folder / "m.jsonl"), "nats per token"),
              testing::HasSubstr("</svg>"));
}

}  // namespace
}  // namespace fovea
