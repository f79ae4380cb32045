// SPDX-License-Identifier: Apache-2.0
#include "fovea/data/examples.h"

#include <gmock/gmock.h>

#include <set>

namespace fovea {
namespace {

using testing::ElementsAre;

// Three texts of 2, 1 and 3 tokens with labels {1}, {0, 2}, {}.
Examples three() {
  return {.stream = {5, 6, 7, 8, 9, 10},
          .starts = {0, 2, 3, 6},
          .labels = {1, 0, 2},
          .label_starts = {0, 1, 3, 3},
          .numbers = {0.5f, -1, 2}};
}

TEST(Examples, KnowTheirTexts) {
  const Examples e = three();
  EXPECT_EQ(e.size(), 3);
  EXPECT_EQ(e.length(2), 3);
  EXPECT_THAT(e.labels_of(1), ElementsAre(0, 2));
  EXPECT_EQ(e.largest(1), 3);
  EXPECT_EQ(e.largest(2), 5);
  EXPECT_EQ(e.largest(9), 6);
}

TEST(Examples, BecomePackedBatches) {
  ExampleBatch batch;
  append(batch, three(), 2, {TargetKind::kLabels, 3});
  append(batch, three(), 1, {TargetKind::kLabels, 3});
  EXPECT_THAT(batch.ids, ElementsAre(8, 9, 10, 7));
  EXPECT_THAT(batch.offsets, ElementsAre(0, 3, 4));
  EXPECT_THAT(batch.samples, ElementsAre(2, 1));
  EXPECT_THAT(batch.values, ElementsAre(0, 0, 0, 1, 0, 1));
  EXPECT_TRUE(batch.labels.empty());
  ExampleBatch numbers, classes;
  append(numbers, three(), 1, {TargetKind::kNumber, 1});
  append(classes, three(), 0, {TargetKind::kClass, 3});
  EXPECT_THAT(numbers.values, ElementsAre(-1));
  EXPECT_THAT(classes.labels, ElementsAre(1));
}

TEST(Examples, AreTrainedOnceAnEpochAndEvaluatedInOrder) {
  ExampleTraining training(three(), {TargetKind::kNumber, 1}, {.batch_size = 2, .seed = 1});
  EXPECT_EQ(training.updates_per_epoch(), 2);
  EXPECT_EQ(training.largest_batch(), 5);
  std::set<std::uint64_t> seen;
  for (index update = 0; update < 2; ++update) {
    for (const std::uint64_t sample : training.batch(update, 0).samples) seen.insert(sample);
  }
  EXPECT_THAT(seen, ElementsAre(0, 1, 2));
  const ExampleEvaluation evaluation(three(), {TargetKind::kNumber, 1}, 2);
  EXPECT_EQ(evaluation.size(), 2);
  EXPECT_THAT(evaluation[0].samples, ElementsAre(0, 1));
  EXPECT_THAT(evaluation[1].values, ElementsAre(2));
}

}  // namespace
}  // namespace fovea
