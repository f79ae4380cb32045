// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include <fstream>
#include <vector>

#include "fovea/base/file.h"
#include "fovea/train/model_folder.h"
#include "fovea/train/run_state.h"
#include "tests/support/folder.h"
#include "tests/train/toy.h"

namespace fovea {
namespace {

std::vector<index> steps_in(const std::filesystem::path& folder) {
  std::vector<index> steps;
  for (const ProcessStart& start : read_starts(folder)) steps.push_back(start.step);
  return steps;
}

TEST(Starts, AreReadAsTheyWereWritten) {
  const TestFolder folder;
  EXPECT_THAT(steps_in(folder.path()), testing::IsEmpty());
  const RunIdentity identity{
      .model = "m", .data = "d", .tokenizer = "t", .isa = "AVX2", .version = "1"};
  append_start(folder.path(), start_of_process(0, 2, identity));
  append_start(folder.path(), start_of_process(10, 4, identity));
  const std::vector<ProcessStart> starts = read_starts(folder.path());
  ASSERT_EQ(starts.size(), 2u);
  EXPECT_EQ(starts[1].step, 10);
  EXPECT_EQ(starts[1].threads, 4);
  EXPECT_EQ(starts[1].isa, "AVX2");
  EXPECT_EQ(starts[1].data, "d");
  EXPECT_FALSE(starts[1].processor.empty());
  EXPECT_THAT(starts[1].time, testing::MatchesRegex("20..-..-..T..:..:..Z"));
}

TEST(Starts, OfUpdatesThatWereGivenUpAreLeftOut) {
  const TestFolder folder;
  for (const index step : {0, 10, 30, 20, 20, 40}) {
    append_start(folder.path(), start_of_process(step, 1, {}));
  }
  EXPECT_THAT(steps_in(folder.path()), testing::ElementsAre(0, 10, 20, 40));
}

TEST(Starts, ATornLineIsEndedByTheNext) {
  const TestFolder folder;
  append_start(folder.path(), start_of_process(0, 1, {}));
  std::ofstream(folder / kStartsName, std::ios::app) << R"({"step":10,"ti)";
  append_start(folder.path(), start_of_process(20, 1, {}));
  EXPECT_THAT(steps_in(folder.path()), testing::ElementsAre(0, 20));
}

TEST(Starts, OfARunAreThoseOfItsProcesses) {
  const TestFolder folder;
  write_model_files(folder.path(), toy_setup(folder.path()).attachments);
  const auto train = [&](const char* stop_after, bool resume) {
    ToyObjective objective;
    TrainingObserver silent;
    Trainer trainer(
        Context(1), objective, silent,
        toy_setup(folder.path(), {.schedule = ScheduleKind::kConstant, .stop_after = stop_after}));
    if (resume) trainer.resume();
    trainer.run();
  };
  train("10u", false);
  EXPECT_THAT(steps_in(folder.path()), testing::ElementsAre(0));
  train("10u", true);  // nothing is left to do
  EXPECT_THAT(steps_in(folder.path()), testing::ElementsAre(0));
  train("20u", true);
  EXPECT_THAT(steps_in(folder.path()), testing::ElementsAre(0, 10));
  EXPECT_EQ(read_starts(folder.path()).back().data, "d");
}

}  // namespace
}  // namespace fovea
