// SPDX-License-Identifier: Apache-2.0
// E7 and E14 in small, where the data lies beside the checkout.
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

}  // namespace
}  // namespace fovea
