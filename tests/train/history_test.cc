// SPDX-License-Identifier: Apache-2.0
#include "fovea/train/history.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <cmath>
#include <fstream>

#include "fovea/base/file.h"
#include "tests/support/folder.h"
#include "tests/support/throws.h"

namespace fovea {
namespace {

std::vector<index> steps_of(const History& history) {
  std::vector<index> steps;
  for (const UpdateRecord& record : history.updates()) steps.push_back(record.step);
  return steps;
}

TEST(History, WritesOneObjectALine) {
  const TestFolder folder;
  History history(folder / "m.jsonl");
  history.add(UpdateRecord{.step = 10, .loss = 0.1, .lr = 1e-3});
  history.add(EvaluationRecord{.step = 10, .valid_loss = 2.5});
  EXPECT_EQ(history.flush(), static_cast<index>(read_file(folder / "m.jsonl").size()));
  EXPECT_THAT(read_file(folder / "m.jsonl"),
              testing::AllOf(testing::StartsWith(R"({"kind":"update","step":10,"loss":0.1,)"),
                             testing::HasSubstr("}\n{\"kind\":\"evaluation\",\"step\":10,")));
}

// A number that a model does not have is left out; a file without it can be read.
TEST(History, AnAccuracyIsWrittenWhereThereIsOne) {
  const TestFolder folder;
  {
    History history(folder / "m.jsonl");
    history.add(UpdateRecord{.step = 1, .running_accuracy = 0.75});
    history.add(UpdateRecord{.step = 2});
    history.add(EvaluationRecord{.step = 2, .train_loss = 0.25, .train_accuracy = 0.5});
    history.add(EvaluationRecord{.step = 3});
  }
  const std::string text = read_file(folder / "m.jsonl");
  EXPECT_THAT(text, testing::HasSubstr(R"("running_accuracy":0.75})"));
  EXPECT_THAT(text, testing::HasSubstr(R"("train_accuracy":0.5})"));
  EXPECT_THAT(text, testing::Not(testing::HasSubstr("null")));
  const HistoryRecords records = read_history(folder / "m.jsonl");
  EXPECT_EQ(records.updates[0].running_accuracy, 0.75);
  EXPECT_TRUE(std::isnan(records.updates[1].running_accuracy));
  EXPECT_EQ(records.evaluations[0].train_accuracy, 0.5);
  EXPECT_TRUE(std::isnan(records.evaluations[1].train_accuracy));
  EXPECT_EQ(records.evaluations[0].train_loss, 0.25);
  EXPECT_TRUE(std::isnan(records.evaluations[1].train_loss));
  EXPECT_EQ(records.unreadable, 0);
}

TEST(History, KeepsWhatHeadsLookLike) {
  const TestFolder folder;
  const AttentionRecord record{
      .step = 7, .entropy = {{1, 2}, {3, 4}}, .max_logit = {{5, 6}, {7, 1.0 / 3}}, .distance = {}};
  index bytes = 0;
  {
    History history(folder / "m.jsonl");
    history.add(record);
    bytes = history.flush();
  }
  EXPECT_EQ(read_file(folder / "m.jsonl"),
            R"({"kind":"attention","step":7,"entropy":[[1.0,2.0],[3.0,4.0]],)"
            R"("max_logit":[[5.0,6.0],[7.0,0.3333333333333333]],"distance":[]})"
            "\n");
  const History again(folder / "m.jsonl", bytes);
  ASSERT_EQ(again.attention().size(), 1u);
  EXPECT_EQ(again.attention()[0].step, 7);
  EXPECT_EQ(again.attention()[0].entropy, record.entropy);
  EXPECT_EQ(again.attention()[0].max_logit, record.max_logit);
  EXPECT_TRUE(again.attention()[0].distance.empty());
  EXPECT_TRUE(again.updates().empty());
}

TEST(History, WritesNullForWhatIsNotFinite) {
  const TestFolder folder;
  History history(folder / "m.jsonl");
  history.add(AttentionRecord{.step = 1, .max_logit = {{-HUGE_VAL, 2}}});
  EXPECT_THAT(read_file(folder / "m.jsonl"), testing::HasSubstr(R"("max_logit":[[null,2.0]])"));
  const auto again = read_history(folder / "m.jsonl").attention;
  ASSERT_EQ(again.size(), 1u);
  EXPECT_TRUE(std::isnan(again[0].max_logit[0][0]));
  EXPECT_EQ(again[0].max_logit[0][1], 2);
}

TEST(History, GoesOnWhereItWasCutOff) {
  const TestFolder folder;
  index bytes = 0;
  {
    History history(folder / "m.jsonl");
    history.add(UpdateRecord{.step = 1, .loss = 1.0 / 3});
    history.add(EvaluationRecord{.step = 1, .valid_loss = 2});
    bytes = history.flush();
    history.add(UpdateRecord{.step = 2});
  }
  History again(folder / "m.jsonl", bytes);
  EXPECT_THAT(steps_of(again), testing::ElementsAre(1));
  EXPECT_EQ(again.updates()[0].loss, 1.0 / 3);
  ASSERT_EQ(again.evaluations().size(), 1u);
  again.add(UpdateRecord{.step = 3});
  History third(folder / "m.jsonl", again.flush());
  EXPECT_THAT(steps_of(third), testing::ElementsAre(1, 3));
}

TEST(History, CanBeReadWithoutChangingIt) {
  const TestFolder folder;
  EXPECT_TRUE(read_history(folder / "none.jsonl").updates.empty());
  EXPECT_FALSE(std::filesystem::exists(folder / "none.jsonl"));
  std::ofstream(folder / "m.jsonl") << R"({"kind":"update","step":10,"loss":2})"
                                    << "\nedited\n"
                                    << R"({"kind":"evaluation","step":10,"valid_loss":3})"
                                    << "\n{\"kind\":\"upd";
  const std::string before = read_file(folder / "m.jsonl");
  const HistoryRecords records = read_history(folder / "m.jsonl");
  ASSERT_EQ(records.updates.size(), 1u);
  EXPECT_EQ(records.updates[0].loss, 2);
  ASSERT_EQ(records.evaluations.size(), 1u);
  EXPECT_EQ(records.evaluations[0].valid_loss, 3);
  EXPECT_EQ(read_file(folder / "m.jsonl"), before);
}

TEST(History, KnowsTheBestOfLinesThatDoNotSayIt) {
  const TestFolder folder;
  std::ofstream file(folder / "m.jsonl");
  for (const auto& [loss, best] : {std::pair{3, 3}, {2, 2}, {4, 2}, {2, 2}}) {
    file << fmt::format(R"({{"kind":"evaluation","step":1,"valid_loss":{},"best_valid_loss":{}}})",
                        loss, best)
         << "\n";
  }
  file << R"({"kind":"evaluation","step":2,"valid_loss":2,"best_valid_loss":2,"is_best":true})"
       << "\n";
  file.close();
  std::vector<bool> best;
  for (const auto& record : read_history(folder / "m.jsonl").evaluations) {
    best.push_back(record.is_best);
  }
  EXPECT_THAT(best, testing::ElementsAre(true, true, false, false, true));
}

TEST(History, DropsALineThatWasNotFinished) {
  const TestFolder folder;
  {
    History history(folder / "m.jsonl");
    history.add(UpdateRecord{.step = 1});
  }
  std::ofstream(folder / "m.jsonl", std::ios::app) << R"({"kind":"upd)";
  History again(folder / "m.jsonl", 1000000);
  EXPECT_THAT(steps_of(again), testing::ElementsAre(1));
  EXPECT_THAT(read_file(folder / "m.jsonl"), testing::EndsWith("}\n"));
}

TEST(History, PassesOverWhatSomebodyEdited) {
  const TestFolder folder;
  {
    History history(folder / "m.jsonl");
    history.add(UpdateRecord{.step = 1});
  }
  std::ofstream(folder / "m.jsonl", std::ios::app) << "note to self\n{\"kind\":\"other\"}\n[]\n";
  History again(folder / "m.jsonl", 1000000);
  EXPECT_EQ(again.updates().front().step, 1);
}

TEST(History, BeginsAgainWhereTheFileIsGone) {
  const TestFolder folder;
  History history(folder / "m.jsonl", 500);
  EXPECT_EQ(history.flush(), 0);
}

TEST(History, SaysWhatItCannotWrite) {
  EXPECT_THROWS(History("/proc/nowhere/m.jsonl"), kWrite, "m.jsonl");
}

}  // namespace
}  // namespace fovea
