// SPDX-License-Identifier: Apache-2.0
#include "fovea/data/text_groups.h"

#include <gtest/gtest.h>

#include <vector>

namespace fovea {
namespace {

using testing::ElementsAre;

// Groups of texts of one token each, whose number is also that of equal texts.
TextGroups texts_of_tokens(const std::vector<std::vector<token>>& groups) {
  TextGroups all;
  for (const std::vector<token>& group : groups) {
    for (const token id : group) {
      all.stream.push_back(id);
      all.same.push_back(id);
      all.starts.push_back(std::ssize(all.stream));
    }
    all.groups.push_back(all.texts());
  }
  return all;
}

TEST(TextGroups, ABatchHasAnchorsThenWhatBelongsToThemThenTheOthers) {
  const TextGroups all = texts_of_tokens({{1, 2, 3}, {4, 5}, {6, 7, 8, 9}});
  const std::vector<index> chosen = {2, 0};
  const GroupBatch batch = batch_of_groups(all, chosen);
  EXPECT_EQ(batch.groups, 2);
  EXPECT_THAT(batch.ids, ElementsAre(6, 1, 7, 2, 8, 9, 3));
  EXPECT_THAT(batch.offsets, ElementsAre(0, 1, 2, 3, 4, 5, 6, 7));
  EXPECT_THAT(batch.samples, ElementsAre(5, 0, 6, 1, 7, 8, 2));
  EXPECT_THAT(batch.left_out, testing::Each(0));
}

TEST(TextGroups, EqualTextsAreNoNegatives) {
  // The first two anchors are equal: what belongs to one belongs to the other. The third text's own
  // is equal to that of the first, and its further text is its anchor.
  const TextGroups all = texts_of_tokens({{1, 2}, {1, 3}, {4, 2, 4}});
  const std::vector<index> chosen = {0, 1, 2};
  const GroupBatch batch = batch_of_groups(all, chosen);
  EXPECT_THAT(batch.left_out, ElementsAre(0, 1, 1, 0,  //
                                          1, 0, 1, 0,  //
                                          1, 0, 0, 1));
}

TEST(TextGroups, AScoredBatchHasItsScores) {
  TextGroups all = texts_of_tokens({{1, 2}, {3, 4}});
  all.scores = {0.5f, 2};
  const std::vector<index> chosen = {1};
  const GroupBatch batch = batch_of_groups(all, chosen);
  EXPECT_THAT(batch.scores, ElementsAre(2));
  EXPECT_TRUE(batch.left_out.empty());
}

TEST(TextGroups, ATrainingKnowsItsLargestBatch) {
  const GroupTraining training(texts_of_tokens({{1, 2}, {3, 4, 5}, {6, 7}}),
                               {.batch_size = 2, .by_length = false});
  EXPECT_EQ(training.most_texts(), 5);
  EXPECT_EQ(training.largest_batch(), 5);
  EXPECT_EQ(training.updates_per_epoch(), 2);
}

}  // namespace
}  // namespace fovea
