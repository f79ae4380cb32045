// SPDX-License-Identifier: Apache-2.0
// E7 and E14 in small, where the data lies beside the checkout.
#include "experiments/translate.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "fovea/base/check.h"
#include "tests/experiments/support.h"
#include "tests/support/folder.h"
#include "tests/support/shared_data.h"
#include "tests/support/throws.h"

namespace fovea {
namespace {

TEST(ReproduceTranslate, SaysWhichFileItNeeds) {
  const TestFolder folder;
  Measured measured;
  EXPECT_THROWS(reproduce_translate(Context(2), {.data = folder.path(), .output = folder.path()},
                                    measured.observer()),
                kMissingInput, "zh_en_handson/zh.txt");
}

TEST(ReproduceTranslate, RunsEveryModel) {
  const std::filesystem::path data = shared_data("zh_en_handson").parent_path();
  if (data.empty() || shared_data("multi30k").empty()) {
    GTEST_SKIP() << "there is no shared/data/zh_en_handson and multi30k above this folder";
  }
  const TestFolder folder;
  const ReproduceOptions options{.data = data, .output = folder.path(), .seeds = 1, .share = 0.001};
  Measured measured;
  reproduce_translate(Context(2), options, measured.observer());
  std::map<std::string, int> rows;
  for (const ReproduceRow& row : measured.rows) {
    ++rows[row.experiment + " " + row.variant];
    EXPECT_GE(*row.ours, 0) << row.metric;
    EXPECT_FALSE(row.published) << "of a trial";
    // Untrained, a word of 3,289 costs log 3289 = 8.1; after an epoch it costs less.
    const bool learned = row.metric == "frozen_token_loss";
    EXPECT_LT(*row.ours, learned ? 8 : 101) << row.variant;
  }
  EXPECT_EQ(rows, (std::map<std::string, int>{{"E7 bahdanau-gru", 4},
                                              {"E7 transformer", 4},
                                              {"E14 positions-in-both", 4},
                                              {"E14 positions-in-the-decoder", 4},
                                              {"E14 positions-in-the-encoder", 4},
                                              {"E14 no-positions", 4}}));
  // A second call finds the runs at their ends, and measures the same.
  Measured again;
  reproduce_translate(Context(1), options, again.observer());
  ASSERT_EQ(again.rows.size(), measured.rows.size());
  for (std::size_t n = 0; n < again.rows.size(); ++n) {
    EXPECT_EQ(again.rows[n].ours, measured.rows[n].ours) << again.rows[n].metric;
  }
}

TEST(Titles, AreReadAsThePublishedCodeReadsThem) {
  const SentencePairs pairs = titles_of(
      {" 你 好A ", "长", "一"}, {"Hello, World! ", std::string(60, 'x') + " y", "Cr\u00e8me."});
  EXPECT_THAT(pairs.source, testing::ElementsAre("你好a", "长", "一"));
  EXPECT_EQ(pairs.target[0], "hello , world !");
  EXPECT_EQ(pairs.target[2], "creme .");
  std::string words = "w";
  for (int n = 0; n < 28; ++n) words += " w";
  EXPECT_EQ(titles_of({"一"}, {words}).size(), 1);
  EXPECT_EQ(titles_of({"一"}, {words + " w"}).size(), 0);
  EXPECT_THROWS(titles_of({"一"}, {}), kShape, "1 lines and 0");
}

using Lines = std::vector<std::string>;

TEST(WordOrder, CountsPairsOfWordsThatBothHave) {
  EXPECT_EQ(word_order(Lines{"a b c"}, Lines{"a b c"}), 1);
  EXPECT_EQ(word_order(Lines{"c b a"}, Lines{"a b c"}), 0);
  EXPECT_NEAR(word_order(Lines{"b a c x"}, Lines{"a b c y"}), 2.0 / 3, 1e-12);
  EXPECT_NEAR(word_order(Lines{"a b", "b a"}, Lines{"a b", "a b"}), 0.5, 1e-12);
}

TEST(WordOrder, LeavesOutWordsThatStandTwice) {
  EXPECT_EQ(word_order(Lines{"b a b c"}, Lines{"a b c"}), 1);  // a and c
  EXPECT_EQ(word_order(Lines{"b a c"}, Lines{"a b c b"}), 1);
}

TEST(WordOrder, OfNothingSharedIsOne) {
  EXPECT_EQ(word_order(Lines{"a b", ""}, Lines{"c d", "x"}), 1);
  EXPECT_THROWS(word_order(Lines{"a"}, Lines{}), kShape, "1 translations and 0 references");
}

}  // namespace
}  // namespace fovea
