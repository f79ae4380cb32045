// SPDX-License-Identifier: Apache-2.0
#include "fovea/train/trainer.h"

#include <gmock/gmock.h>

#include <cmath>

#include "fovea/base/file.h"
#include "fovea/train/model_folder.h"
#include "tests/support/folder.h"
#include "tests/support/throws.h"
#include "tests/train/toy.h"

namespace fovea {
namespace {

using testing::ElementsAre;

class TrainerTest : public testing::Test {
 protected:
  TrainerTest() { write_model_files(folder.path(), std::vector<NamedFile>{{"config.json", "{}"}}); }

  TrainResult run(TrainOptions options = {}) {
    return Trainer(Context(1), objective, observer, toy_setup(folder.path(), options)).run();
  }

  float stored_weight(index i) {
    return read_model_weights(folder.path()).at("weights").data<float>()[i];
  }

  TestFolder folder;
  ToyObjective objective;
  ToyObserver observer;
};

TEST_F(TrainerTest, ImprovesTheLoss) {
  const TrainResult result = run({.stop_after = "200u"});
  EXPECT_EQ(result.state.step, 200);
  EXPECT_EQ(result.state.tokens, 1600);
  EXPECT_FALSE(result.stopped);
  EXPECT_LT(observer.updates.back().loss, observer.updates.front().loss / 2);
}

TEST_F(TrainerTest, EvaluatesAndSavesWhenDueAndAtTheEnd) {
  run({.stop_after = "23u"});
  std::vector<index> evaluated;
  for (const auto& record : observer.evaluations) evaluated.push_back(record.step);
  EXPECT_THAT(evaluated, ElementsAre(5, 10, 15, 20, 23));
  EXPECT_THAT(observer.saves, ElementsAre(10, 20, 23));
}

TEST_F(TrainerTest, ObservesEveryFewUpdates) {
  run({.stop_after = "10u", .observe_every = 4});
  const auto records = read_history(folder / "metrics.jsonl").attention;
  ASSERT_EQ(records.size(), 2u);
  EXPECT_EQ(records[0].step, 4);
  EXPECT_THAT(records[0].entropy, ElementsAre(ElementsAre(3, 1)));  // of the update from 3 to 4
  EXPECT_EQ(records[1].step, 8);
  EXPECT_THAT(read_file(folder / "loss.svg"), testing::HasSubstr("layer 1, head 2"));
}

TEST_F(TrainerTest, CountsEpochsInUpdates) {
  const TrainResult result = run({.stop_after = "3e", .eval_every = "1e", .save_every = "2e"});
  EXPECT_EQ(result.state.step, 15);
  EXPECT_THAT(observer.saves, ElementsAre(10, 15));
}

// The three training losses are what their names say.
TEST_F(TrainerTest, TellsTheLossesApart) {
  run({.stop_after = "20u", .eval_every = "10u"});
  double window = 0, recent = 0;
  for (std::size_t i = 10; i < 20; ++i) window += observer.updates[i].loss / 10;
  for (std::size_t i = 4; i < 20; ++i) recent += observer.updates[i].loss / 16;
  EXPECT_NEAR(observer.updates[19].running_loss, window, 1e-9);
  EXPECT_NEAR(observer.updates[19].mean16_loss, recent, 1e-9);
  EXPECT_NEAR(observer.evaluations[1].train_loss, window, 1e-9);
}

// A running share of right answers, which begins again with each interval.
TEST_F(TrainerTest, RecordsTheRunningAccuracy) {
  objective.counts_hits = true;
  const TrainResult result = run({.stop_after = "20u", .eval_every = "10u"});
  EXPECT_EQ(observer.updates[2].running_accuracy, (0.0 + 1 + 2) / (3 * 8));
  EXPECT_EQ(observer.updates[9].running_accuracy, (36.0 + 0) / 80);
  EXPECT_EQ(observer.updates[10].running_accuracy, 1.0 / 8);
  EXPECT_EQ(observer.evaluations[0].train_accuracy, 36.0 / 80);
  EXPECT_EQ(observer.evaluations[1].train_accuracy, observer.updates[19].running_accuracy);
  EXPECT_EQ(result.state.train_accuracy, observer.updates[19].running_accuracy);
  const HistoryRecords records = read_history(folder.path() / "metrics.jsonl");
  EXPECT_EQ(records.evaluations[1].train_accuracy, observer.evaluations[1].train_accuracy);
}

TEST_F(TrainerTest, WithoutAnAccuracyNothingIsWritten) {
  run({.stop_after = "5u"});
  EXPECT_TRUE(std::isnan(observer.updates[2].running_accuracy));
  EXPECT_THAT(read_file(folder / "metrics.jsonl"), testing::Not(testing::HasSubstr("accuracy")));
}

TEST_F(TrainerTest, TrainLossIsThatOfTheLastEpochWhereEpochsAreCounted) {
  const TrainResult result = run({.stop_after = "3e", .eval_every = "2u"});
  double epoch = 0;
  for (std::size_t i = 10; i < 15; ++i) epoch += observer.updates[i].loss / 5;
  EXPECT_NEAR(result.state.train_loss, epoch, 1e-9);
}

TEST_F(TrainerTest, KeepsTheBestModel) {
  float best = 0;
  objective.validation_loss = [&](index step) {
    if (step == 10) best = objective.values()[3];
    return step == 10 ? 1.0 : 2.0;
  };
  const TrainResult result = run();
  EXPECT_EQ(result.state.best_step, 10);
  EXPECT_EQ(result.state.best_valid_loss, 1.0);
  EXPECT_EQ(stored_weight(3), best);
  EXPECT_NE(objective.values()[3], best);
}

// The largest score, not the lowest loss; the numbers are written and shown.
TEST_F(TrainerTest, AScoreChoosesTheBestModel) {
  objective.validation_loss = [](index step) { return static_cast<double>(step); };
  objective.score = [](index step) { return step == 15 ? 0.75 : 0.5; };
  const TrainResult result = run();
  EXPECT_EQ(result.state.best_step, 15);
  EXPECT_EQ(result.state.best_valid_loss, 15);
  EXPECT_EQ(result.state.best_score, 0.75);
  const HistoryRecords records = read_history(folder.path() / "metrics.jsonl");
  ASSERT_EQ(records.metrics.size(), 4u);
  EXPECT_EQ(records.metrics[2].step, 15);
  EXPECT_TRUE(records.metrics[2].is_best);
  EXPECT_FALSE(records.metrics[3].is_best);
  ASSERT_EQ(records.metrics[2].values.size(), 1u);
  EXPECT_EQ(records.metrics[2].values[0].name, "accuracy");
  EXPECT_EQ(records.metrics[2].values[0].value, 0.75);
  EXPECT_EQ(observer.metrics.size(), 4u);
  EXPECT_THAT(read_file(folder.path() / "loss.svg"), testing::HasSubstr("best accuracy 0.7500"));
}

// Such as a correlation with constant predictions, which the first weights often give.
TEST_F(TrainerTest, AScoreThatIsNotDefinedIsTheWorst) {
  objective.score = [](index step) { return step == 15 ? 0.25 : NAN; };
  const TrainResult result = run();
  EXPECT_EQ(result.state.best_step, 15);
  EXPECT_EQ(result.state.best_score, 0.25);
}

TEST_F(TrainerTest, EndsEarlyWithoutPatience) {
  objective.validation_loss = [](index step) { return step == 10 ? 1.0 : 2.0; };
  const TrainOptions options{.stop_after = "100u", .eval_every = "5u", .patience = 3};
  const TrainResult result = run(options);
  EXPECT_EQ(result.state.step, 25);
  EXPECT_FALSE(result.stopped);
  EXPECT_THAT(observer.notices, testing::Contains(testing::HasSubstr("ends early")));
  EXPECT_EQ(observer.saves.back(), 25);
}

TEST_F(TrainerTest, LogsTheUpdateAfterWhichPatienceEnds) {
  objective.validation_loss = [](index step) { return step == 10 ? 1.0 : 2.0; };
  const TrainResult result =
      run({.stop_after = "100u", .eval_every = "5u", .log_every = 7, .patience = 3});
  const HistoryRecords records = read_history(folder / "metrics.jsonl");
  std::vector<index> logged;
  for (const UpdateRecord& record : records.updates) logged.push_back(record.step);
  EXPECT_THAT(logged, testing::ElementsAre(7, 14, 21, 25));
  EXPECT_EQ(records.evaluations.back().step, 25);
  EXPECT_GE(result.state.metrics_bytes,
            static_cast<index>(std::filesystem::file_size(folder / "metrics.jsonl")));
}

// The line of the update after which patience ended is that of an end: a run that goes on has none.
TEST_F(TrainerTest, GoesOnWithMorePatienceAsIfItHadNeverEnded) {
  objective.validation_loss = [](index step) { return step == 10 ? 1.0 : 2.0; };
  const auto lines = [&](const std::filesystem::path& run) {
    std::string all;
    const HistoryRecords records = read_history(run / "metrics.jsonl");
    for (const UpdateRecord& one : records.updates) all += fmt::format("{} ", one.step);
    for (const EvaluationRecord& one : records.evaluations) all += fmt::format("{}! ", one.step);
    return all;
  };
  TrainOptions options{.stop_after = "40u", .eval_every = "5u", .log_every = 7, .patience = 3};
  EXPECT_EQ(run(options).state.step, 25);
  const std::string ended = lines(folder.path());
  EXPECT_EQ(ended, "7 14 21 25 5! 10! 15! 20! 25! ");
  const auto go_on = [&](Request request) {
    ToyObjective anew;
    anew.validation_loss = objective.validation_loss;
    ToyObserver last;
    last.wanted = request;
    Trainer trainer(Context(1), anew, last, toy_setup(folder.path(), options));
    trainer.resume();
    return trainer.run();
  };
  EXPECT_EQ(go_on(Request::kNone).state.step, 25);  // it has ended
  EXPECT_EQ(lines(folder.path()), ended);
  options.patience = 0;
  EXPECT_EQ(go_on(Request::kNone).state.metrics_bytes_to_go_on, -1);
  EXPECT_EQ(lines(folder.path()), "7 14 21 28 35 40 5! 10! 15! 20! 25! 30! 35! 40! ");
}

// As if it was killed after it had written a few more lines, then resumed as it was begun.
TEST_F(TrainerTest, AnEndOfPatienceKeepsNoLineOfALongerRunThatWasKilled) {
  objective.validation_loss = [](index step) { return step == 10 ? 1.0 : 2.0; };
  const TrainOptions options{
      .stop_after = "40u", .eval_every = "5u", .log_every = 7, .patience = 3};
  const TrainResult ended = run(options);
  const auto file = folder / "metrics.jsonl";
  std::filesystem::resize_file(file,
                               static_cast<std::uintmax_t>(ended.state.metrics_bytes_to_go_on));
  write_file_durably(file, read_file(file) + "{\"kind\":\"update\",\"step\":28}\n");
  ToyObjective anew;
  Trainer trainer(Context(1), anew, observer, toy_setup(folder.path(), options));
  trainer.resume();
  EXPECT_EQ(trainer.history().updates().back().step, 21);
  EXPECT_EQ(trainer.history().evaluations().back().step, 25);
}

TEST_F(TrainerTest, SaysWhichEvaluationsWereTheBest) {
  objective.validation_loss = [](index step) { return step == 10 ? 1.0 : step == 5 ? 3 : 1; };
  run({.stop_after = "20u", .eval_every = "5u"});
  std::vector<bool> best;
  for (const EvaluationRecord& record : observer.evaluations) best.push_back(record.is_best);
  EXPECT_THAT(best, testing::ElementsAre(true, true, false, false));
}

TEST_F(TrainerTest, WithoutValidationKeepsTheLastModel) {
  objective.validates = false;
  const TrainResult result = run({.stop_after = "13u"});
  EXPECT_EQ(result.state.best_step, -1);
  EXPECT_EQ(stored_weight(3), objective.values()[3]);
}

TEST_F(TrainerTest, StopsBeforeADivergedUpdateIsApplied) {
  std::vector<float> before;
  objective.on_forward = [&](index update) {
    if (update != 12) return;
    before.assign(objective.values(), objective.values() + 8);
    objective.extra_loss = NAN;
  };
  EXPECT_THROWS(run(), kDiverged, "diverged at update 13");
  EXPECT_THAT(std::vector<float>(objective.values(), objective.values() + 8),
              testing::ElementsAreArray(before));
  EXPECT_THAT(observer.saves, ElementsAre(10));
  EXPECT_TRUE(std::isfinite(stored_weight(3)));
}

TEST_F(TrainerTest, WeightsThatAreNotFiniteAreNotSaved) {
  objective.validates = false;
  observer.on_updated = [&](index step) {
    if (step == 20) objective.value().data<float>()[3] = INFINITY;
  };
  EXPECT_THROWS(run({.log_every = 10}), kDiverged,
                "diverged at update 20: a value of weights is not finite");
  EXPECT_THAT(observer.saves, ElementsAre(10));
  EXPECT_TRUE(std::isfinite(stored_weight(3)));
}

TEST_F(TrainerTest, AnInfiniteValidationLossIsDivergence) {
  objective.validation_loss = [](index step) { return step == 5 ? 1.0 : INFINITY; };
  EXPECT_THROWS(run(), kDiverged, "the loss is inf");
}

TEST_F(TrainerTest, SavesOnRequestAndGoesOn) {
  observer.wanted = Request::kSave;
  observer.at_step = 3;
  EXPECT_FALSE(run().stopped);
  EXPECT_THAT(observer.saves, ElementsAre(3, 10, 20));
}

TEST_F(TrainerTest, StopsOnRequestWithACheckpoint) {
  observer.wanted = Request::kStop;
  observer.at_step = 7;
  const TrainResult result = run();
  EXPECT_TRUE(result.stopped);
  EXPECT_EQ(result.state.step, 7);
  EXPECT_THAT(observer.saves, ElementsAre(7));
}

TEST_F(TrainerTest, StopsInsideAnEvaluation) {
  observer.wanted = Request::kStop;
  observer.at_step = 5;
  run();
  EXPECT_EQ(objective.validations, 0);
  EXPECT_THAT(observer.saves, ElementsAre(5));
}

TEST_F(TrainerTest, StoppedInTheLastEvaluationItIsNotComplete) {
  observer.wanted = Request::kStop;
  observer.at_step = 20;
  const TrainResult result = run({.stop_after = "20u"});
  EXPECT_EQ(result.state.step, 20);
  EXPECT_NE(result.state.evaluated_step, 20);
  EXPECT_TRUE(result.stopped);
}

TEST_F(TrainerTest, DrawsTheCurve) {
  run();
  EXPECT_THAT(read_file(folder / "loss.svg"), testing::HasSubstr("<svg"));
}

TEST_F(TrainerTest, EndsByTheClock) {
  const TrainResult result = run({.stop_after = "0.0001h"});
  EXPECT_GE(result.state.step, 1);
  EXPECT_GE(result.state.seconds, 0.36);
  EXPECT_LT(result.state.seconds, 30);
  EXPECT_EQ(observer.evaluations.back().step, result.state.step);
  EXPECT_EQ(observer.saves.back(), result.state.step);
}

}  // namespace
}  // namespace fovea
