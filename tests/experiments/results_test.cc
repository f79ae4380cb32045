// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "experiments/experiment.h"
#include "fovea/base/file.h"
#include "tests/support/folder.h"
#include "tests/support/throws.h"

namespace fovea {
namespace {

ReproduceRow row(index seed, double ours) {
  return {.experiment = "E4",
          .variant = "compat",
          .seed = seed,
          .metric = "epoch_mean",
          .published = 1.5,
          .ours = ours};
}

TEST(ReproduceResults, TheTableHasMeanAndSpreadOverSeeds) {
  const TestFolder folder;
  ReproduceResults results(folder.path() / "results.jsonl");
  results.add(row(1, 1));
  results.add(row(2, 3));
  EXPECT_THAT(results.table(),
              testing::ContainsRegex("E4 +compat +epoch_mean +1.5 +2.0000 \\+- 1.4142"));
}

TEST(ReproduceResults, ARowTakesThePlaceOfTheEarlierOne) {
  const TestFolder folder;
  const auto file = folder.path() / "results.jsonl";
  ReproduceResults(file).add(row(1, 1));
  ReproduceResults(file).add(row(2, 3));
  const std::string before = read_file(file);
  ReproduceResults(file).add(row(1, 7));
  EXPECT_EQ(read_file(file),
            json_of_row(row(1, 7)).line() + "\n" + json_of_row(row(2, 3)).line() + "\n");
  ReproduceResults(file).add(row(1, 1));
  EXPECT_EQ(read_file(file), before);
}

TEST(ReproduceResults, DropsALastLineThatIsNotFinished) {
  const TestFolder folder;
  const auto file = folder.path() / "results.jsonl";
  const std::string first = json_of_row(row(1, 1)).line() + "\n";
  write_file_atomically(file, first + json_of_row(row(2, 2)).line().substr(0, 20));
  ReproduceResults results(file);
  ASSERT_EQ(results.notes().size(), 1u);
  EXPECT_THAT(results.notes()[0],
              testing::HasSubstr("results.jsonl:2: the last line is not finish"));
  results.add(row(3, 3));
  EXPECT_EQ(read_file(file), first + json_of_row(row(3, 3)).line() + "\n");
}

TEST(ReproduceResults, AForeignFileIsAnErrorThatNamesTheLine) {
  const TestFolder folder;
  const auto file = folder.path() / "results.jsonl";
  for (const char* line : {"notes", "{\"experiment\": \"E4\"}", "[]"}) {
    write_file_atomically(file, json_of_row(row(1, 1)).line() + "\n" + line + "\n");
    EXPECT_THROWS(ReproduceResults{file}, kConfig,
                  "results.jsonl:2: this line is no result of fovea reproduce");
  }
}

}  // namespace
}  // namespace fovea
