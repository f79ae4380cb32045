// SPDX-License-Identifier: Apache-2.0
// E1, E2, E3, P9 on a few reviews, where the data lies beside the checkout.
#include <gtest/gtest.h>

#include <set>

#include "fovea/base/check.h"
#include "fovea/base/file.h"
#include "tests/experiments/support.h"
#include "tests/support/folder.h"
#include "tests/support/shared_data.h"
#include "tests/support/throws.h"

namespace fovea {
namespace {

TEST(ReproduceImdb, SaysWhichFileItNeeds) {
  const TestFolder folder;
  Measured measured;
  EXPECT_THROWS(reproduce_imdb(Context(2), {.data = folder.path(), .output = folder.path()},
                               measured.observer()),
                kMissingInput, "train.tsv.zst");
}

TEST(ReproduceImdb, RunsEveryModelAndGoesOn) {
  const std::filesystem::path data = shared_data("imdb").parent_path();
  if (data.empty()) GTEST_SKIP() << "there is no shared/data/imdb above this folder";
  const TestFolder folder;
  const ReproduceOptions options{
      .data = data, .output = folder.path() / "whole", .seeds = 1, .share = 0.004};
  Measured whole;
  reproduce_imdb(Context(2), options, whole.observer());
  std::set<std::string> runs;
  for (const ReproduceRow& row : whole.rows) {
    runs.insert(row.experiment + " " + row.variant);
    EXPECT_EQ(row.by_epoch.size(), 5u) << row.experiment << row.metric;
    EXPECT_FALSE(row.published) << "a trial is not what was published";
    EXPECT_TRUE(*row.ours > 0 && *row.ours < 1.5) << row.experiment << row.metric;
  }
  EXPECT_EQ(runs, (std::set<std::string>{"E1 compat-unscaled", "E1 compat-scaled", "E1 fixed",
                                         "E2 compat-unscaled", "E2 compat-scaled", "E2 fixed",
                                         "E3 compat-lstm", "E3 fixed-lstm", "P9 compat-learned",
                                         "P9 fixed-learned"}));
  EXPECT_EQ(whole.rows.size(), 5 * runs.size());
  for (const char* name :
       {"E1.svg", "E2.svg", "E3.svg", "P9.svg", "E1-compat-unscaled-attention.svg",
        "E2-fixed-attention.svg", "P9-fixed-learned-attention.svg"}) {
    EXPECT_TRUE(std::filesystem::exists(options.output / name)) << name;
  }

  // Stopped in the middle of an epoch of the second run: four updates each epoch.
  ReproduceOptions stopped = options;
  stopped.output = folder.path() / "parts";
  Measured parts;
  parts.stop_after = 5 * 4 + 6;
  EXPECT_THROW(reproduce_imdb(Context(2), stopped, parts.observer()), ReproduceStopped);
  Measured rest;
  reproduce_imdb(Context(2), stopped, rest.observer());
  ASSERT_EQ(rest.rows.size(), whole.rows.size());
  for (std::size_t i = 0; i < rest.rows.size(); ++i) {
    EXPECT_EQ(rest.rows[i].by_epoch, whole.rows[i].by_epoch) << rest.rows[i].variant;
  }
  // Nothing is left to train: nobody is asked whether to stop.
  // A picture that a kill has left out is drawn now, and the same.
  const auto picture = stopped.output / "E1-compat-unscaled-attention.svg";
  const std::string drawn = read_file(picture);
  EXPECT_THAT(drawn, testing::HasSubstr("(padding)"));
  std::filesystem::remove(picture);
  Measured again;
  reproduce_imdb(Context(2), stopped, again.observer());
  EXPECT_EQ(again.asked, 0);
  EXPECT_EQ(read_file(picture), drawn);
  EXPECT_EQ(again.rows.size(), whole.rows.size());
}

}  // namespace
}  // namespace fovea
