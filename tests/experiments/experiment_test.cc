// SPDX-License-Identifier: Apache-2.0
#include "experiments/experiment.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fovea/base/file.h"
#include "fovea/tensor/checksum.h"
#include "tests/support/folder.h"
#include "tests/support/throws.h"

namespace fovea {
namespace {

using testing::DoubleEq;
using testing::ElementsAre;
using testing::HasSubstr;

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

TEST(ReproduceRow, IsALineOfJson) {
  const ReproduceRow row{.experiment = "E4",
                         .variant = "compat",
                         .seed = 2,
                         .metric = "last_step_loss",
                         .published = 1.5,
                         .ours = 1.25,
                         .by_epoch = {2, 1.25},
                         .seconds_per_epoch = 0.5};
  EXPECT_EQ(json_of_row(row).line(),
            R"({"experiment":"E4","variant":"compat","seed":2,"metric":"last_step_loss",)"
            R"("published":1.5,"ours":1.25,"by_epoch":[2.0,1.25],"seconds_per_epoch":0.5,)"
            R"("pytorch_seconds_per_epoch":null})");
}

TEST(SeedCurves, AreTheMeansOverTheSeeds) {
  SeedCurves curves("accuracy");
  curves.publish("E1", {.5, .25});
  curves.add("E1", "plain", {.5, .75});
  curves.add("E2", "other", {1});
  curves.add("E1", "fixed", {.125, .25});
  curves.add("E1", "plain", {.25, .75});
  const Plot plot = curves.plot("E1");
  EXPECT_EQ(plot.title, "E1");
  EXPECT_THAT(plot.subtitle, HasSubstr("mean of 1 to 2 seeds"));
  ASSERT_EQ(plot.curves.size(), 3u);
  EXPECT_EQ(plot.curves[0].name, "plain (2)");
  EXPECT_EQ(plot.curves[0].points[0].x, 1);
  EXPECT_EQ(plot.curves[0].points[0].y, .375);
  EXPECT_THAT(plot.curves[0].spread, ElementsAre(DoubleEq(.125 * 1.4142135623730951), 0));
  EXPECT_EQ(plot.curves[1].name, "fixed (1)");
  EXPECT_TRUE(plot.curves[1].spread.empty());
  EXPECT_EQ(plot.curves[2].name, "published");
  EXPECT_EQ(plot.curves[2].points[1].y, .25);
  EXPECT_EQ(curves.plot("E2").subtitle, "one seed");
  EXPECT_EQ(curves.plot("E2").curves.size(), 1u);
  EXPECT_TRUE(curves.plot("E3").curves.empty());
}

TEST(DataFile, IsThereOrSaysWhatIsNeededWhere) {
  const TestFolder folder;
  const std::string checksum = xxh3_128("text");
  const DataFile file{"texts.txt", checksum, "0123", "a library"};
  EXPECT_THROWS(require_data(folder.path(), file), kMissingInput, "texts.txt");
  const auto error = error_of([&] { require_data(folder.path(), file); });
  EXPECT_EQ(error->hint(), "put the file with SHA-256 0123 there; it comes from a library");
  write_file_atomically(folder.path() / "texts.txt", "another text");
  EXPECT_THROWS(require_data(folder.path(), file), kInputFormat, "this is another file");
  write_file_atomically(folder.path() / "texts.txt", "text");
  EXPECT_EQ(require_data(folder.path(), file), folder.path() / "texts.txt");
}

}  // namespace
}  // namespace fovea
