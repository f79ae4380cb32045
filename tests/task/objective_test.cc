// SPDX-License-Identifier: Apache-2.0
#include "fovea/task/objective.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace fovea {
namespace {

using testing::ElementsAre;

TEST(ObservedAttention, HasTheMeansOverQueries) {
  const std::vector<HeadStatistics> seen = {
      {.queries = 2, .entropy = {2, 4}, .max_logit = {3}, .distance = {6, 8}}, {.max_logit = {5}}};
  const AttentionRecord record = record_of(seen);
  EXPECT_THAT(record.max_logit, ElementsAre(ElementsAre(3), ElementsAre(5)));
  EXPECT_THAT(record.entropy, ElementsAre(ElementsAre(1, 2)));
  EXPECT_THAT(record.distance, ElementsAre(ElementsAre(3, 4)));
}

TEST(Score, IsLargerWithTheLowerLossAmongEqualOnes) {
  EXPECT_GT(score_with_tie(0.5, 1), score_with_tie(0.5, 2));
  EXPECT_LT(score_with_tie(0.5, 1), score_with_tie(0.50001, 1e9));  // any better score counts more
}

struct TwoTargets {
  index target_count() const { return 2; }
};

TEST(LossOfBatches, IsSummedAndCanBeInterrupted) {
  Tape tape(Context(1));
  const auto batch_at = [](index) { return TwoTargets(); };
  const float three = 3;
  const auto loss_of = [&](const TwoTargets&) {
    return tape.constant(Rows<const float>{&three, 1, 1});
  };
  const auto loss = loss_of_batches(tape, 2, batch_at, loss_of, {});
  ASSERT_TRUE(loss.has_value());
  EXPECT_EQ(loss->targets, 4);
  EXPECT_EQ(validation_of(loss)->loss, 1.5);
  int asked = 0;
  EXPECT_FALSE(loss_of_batches(tape, 9, batch_at, loss_of, [&] { return ++asked == 2; }));
  EXPECT_EQ(asked, 2);
  EXPECT_FALSE(validation_of(std::nullopt));
}

}  // namespace
}  // namespace fovea
