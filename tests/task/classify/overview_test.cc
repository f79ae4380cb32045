// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include "fovea/task/classify/notices.h"

namespace fovea {
namespace {

TEST(Overview, SaysHowLongTextsAre) {
  Examples examples;
  examples.truncated = 2;
  std::vector<index> lengths;
  for (index i = 100; i >= 1; --i) lengths.push_back(i);
  EXPECT_EQ(length_line("training", {examples, lengths}, 98),
            "training: 100 texts; tokens: median 50, 90 % at most 90, longest 100; cut to 98: 2");
  examples.truncated = 0;
  EXPECT_EQ(length_line("validation", {examples, {7}}, 98),
            "validation: 1 text; tokens: median 7, 90 % at most 7, longest 7");
}

TEST(Overview, ListsTenLabels) {
  EXPECT_EQ(balance_line(LabelSet({"a", "b"}), {.counts = {1, 3}, .texts = 4}),
            "classes: 2; b 3 (75.0 %), a 1 (25.0 %)");
  EXPECT_EQ(balance_line(LabelSet({"a"}), {.counts = {1}, .texts = 4, .multi_label = true}),
            "labels: 1; a 1 (25.0 %)");
  std::vector<std::string> many;
  for (int i = 0; i < 12; ++i) many.push_back(std::to_string(i));
  const std::string line =
      balance_line(LabelSet(many), {.counts = std::vector<index>(12, 1), .texts = 12});
  EXPECT_THAT(line, testing::EndsWith("9 1 (8.3 %), ..."));
}

TEST(Overview, SaysWhatNumbersAndUnknownWordsThereAre) {
  EXPECT_EQ(number_line({1, 3}, {2, 1}), "numbers: 1 to 3, mean 2, standard deviation 1");
  EXPECT_EQ(number_line({1.7e9, 1.7e9 + 10}, {1.7e9 + 5, 5}),
            "numbers: 1700000000 to 1700000010, mean 1700000005, standard deviation 5");
  const Examples known{.stream = {2, 3}, .starts = {0, 2}};
  const Examples half{.stream = {1, 3}, .starts = {0, 2}};
  EXPECT_EQ(unknown_line(known, &known, 1), "");
  EXPECT_EQ(unknown_line(known, &half, 1),
            "unknown words: 0.0 % of the training texts, 50.0 % of the validation texts");
  EXPECT_EQ(unknown_line(half, nullptr, 1), "unknown words: 50.0 % of the training texts");
}

}  // namespace
}  // namespace fovea
