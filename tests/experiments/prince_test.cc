// SPDX-License-Identifier: Apache-2.0
// E4, E5, E6, E9 for an epoch each, where the data lies beside the checkout.
#include <gtest/gtest.h>

#include <set>

#include "fovea/base/check.h"
#include "tests/experiments/support.h"
#include "tests/support/folder.h"
#include "tests/support/shared_data.h"
#include "tests/support/throws.h"

namespace fovea {
namespace {

TEST(ReproducePrince, SaysWhichFileItNeeds) {
  const TestFolder folder;
  Measured measured;
  EXPECT_THROWS(reproduce_prince(Context(2), {.data = folder.path(), .output = folder.path()},
                                 measured.observer()),
                kMissingInput, "sentences.tok.txt");
}

TEST(ReproducePrince, RunsEveryModelInItsVariants) {
  const std::filesystem::path data = shared_data("little_prince").parent_path();
  if (data.empty()) GTEST_SKIP() << "there is no shared/data/little_prince above this folder";
  const TestFolder folder;
  Measured measured;
  reproduce_prince(Context(2), {.data = data, .output = folder.path(), .seeds = 1, .share = 0.001},
                   measured.observer());
  std::set<std::string> runs;
  for (const ReproduceRow& row : measured.rows) {
    runs.insert(row.experiment + " " + row.variant);
    // Untrained, a word of 1078 costs log 1078 = 6.98; after an epoch it costs less.
    EXPECT_GT(*row.ours, 1) << row.experiment << row.metric;
    EXPECT_LT(*row.ours, 7.5) << row.experiment << row.metric;
  }
  EXPECT_EQ(runs, (std::set<std::string>{"E4 compat", "E4 fixed", "E5 compat", "E5 fixed", "E6 gru",
                                         "E6 lstm", "E6 rnn", "E6 rnn-2-layers", "E6 sru",
                                         "E9 compat", "E9 fixed"}));
  EXPECT_EQ(measured.rows.size(), 4 * runs.size());
  for (const char* name : {"E4.svg", "E5.svg", "E6.svg", "E9.svg"}) {
    EXPECT_TRUE(std::filesystem::exists(folder.path() / name)) << name;
  }
}

}  // namespace
}  // namespace fovea
