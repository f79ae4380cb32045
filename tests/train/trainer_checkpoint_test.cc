// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <unistd.h>

#include <fstream>

#include "fovea/base/file.h"
#include "fovea/train/model_folder.h"
#include "fovea/train/trainer.h"
#include "tests/support/folder.h"
#include "tests/support/throws.h"
#include "tests/train/toy.h"

namespace fovea {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// The results that must be equal between a run that was interrupted and one that was not.
struct Outcome {
  std::string model;
  std::string optimizer;
  std::vector<double> losses;
  std::vector<double> validations;
  RunState state;
};

class TrainerCheckpoint : public testing::Test {
 protected:
  void begin(const std::filesystem::path& path) {
    write_model_files(path, std::vector<NamedFile>{{"config.json", "{}"}});
  }

  // One process: resumes if told so, stops after `stop_at` updates.
  Outcome process(const std::filesystem::path& path, bool resume, index stop_at) {
    ToyObjective objective;
    objective.counts_hits = true;
    objective.validation_loss = validation_loss;
    observer = ToyObserver();
    observer.wanted = Request::kStop;
    observer.at_step = stop_at;
    Trainer trainer(Context(1), objective, observer, setup(path));
    if (resume) from.empty() ? trainer.resume() : trainer.resume(load_checkpoint(from), future);
    trainer.run();
    Outcome outcome{
        read_file(path / "model.safetensors"),
        load_newest_checkpoint(path / "checkpoints").checkpoint.bytes("optimizer.safetensors"),
        {},
        {},
        trainer.state()};
    for (const auto& record : trainer.history().updates())
      outcome.losses.push_back(record.running_loss + record.mean16_loss + record.running_accuracy);
    for (const auto& record : trainer.history().evaluations())
      outcome.validations.push_back(record.valid_loss + record.train_loss + record.train_accuracy);
    return outcome;
  }

  TrainerSetup setup(const std::filesystem::path& path) {
    TrainerSetup made = toy_setup(path, {.stop_after = "40u", .log_every = 3, .keep = keep});
    made.options.save_dtype = save_dtype;
    made.identity = identity;
    return made;
  }

  TestFolder folder;
  ToyObserver observer;
  Future future = Future::kSame;
  index keep = 2;
  Precision save_dtype = Precision::kFloat32;
  std::function<double(index step)> validation_loss;  // none: that of the toy
  RunIdentity identity{.model = "m", .data = "d", .tokenizer = "t", .isa = "i", .version = "v"};
  std::filesystem::path from;
};

void expect_same(const Outcome& a, const Outcome& b) {
  EXPECT_EQ(a.model, b.model);
  EXPECT_EQ(a.optimizer, b.optimizer);
  EXPECT_EQ(a.losses, b.losses);
  EXPECT_EQ(a.validations, b.validations);
  EXPECT_EQ(a.state.tokens, b.state.tokens);
  EXPECT_EQ(a.state.train_loss, b.state.train_loss);
  EXPECT_EQ(a.state.window_right, b.state.window_right);
  EXPECT_EQ(a.state.train_accuracy, b.state.train_accuracy);
  EXPECT_EQ(a.state.best_step, b.state.best_step);
}

// Some of the steps are where an evaluation or a save is due.
TEST_F(TrainerCheckpoint, ResumedRunsEndWithTheSameBits) {
  begin(folder / "straight");
  const Outcome straight = process(folder / "straight", false, 1000);
  for (const index stop : {1, 3, 5, 7, 10, 11, 20, 39}) {
    const auto path = folder / ("at" + std::to_string(stop));
    begin(path);
    process(path, false, stop);
    expect_same(process(path, true, 1000), straight);
  }
}

TEST_F(TrainerCheckpoint, ManyInterruptionsChangeNothing) {
  begin(folder / "straight");
  begin(folder / "broken");
  const Outcome straight = process(folder / "straight", false, 1000);
  process(folder / "broken", false, 4);
  for (const index stop : {5, 5, 11, 12, 20, 39}) process(folder / "broken", true, stop);
  expect_same(process(folder / "broken", true, 1000), straight);
}

TEST_F(TrainerCheckpoint, AFinishedRunIsLeftAsItIs) {
  begin(folder / "run");
  const Outcome first = process(folder / "run", false, 1000);
  expect_same(process(folder / "run", true, 1000), first);
  EXPECT_TRUE(observer.updates.empty());
}

// Killed after a checkpoint was saved, and before the old ones were removed.
TEST_F(TrainerCheckpoint, ResumingRemovesWhatAKilledSaveHasLeft) {
  begin(folder / "run");
  keep = 9;
  process(folder / "run", false, 1000);
  const auto all = checkpoints_of(folder / "run");
  const auto left = all / "step-000099.tmp.1";
  std::filesystem::create_directories(left);
  keep = 2;
  process(folder / "run", true, 1000);
  EXPECT_TRUE(observer.updates.empty());  // and nothing was saved
  EXPECT_FALSE(std::filesystem::exists(left));
  EXPECT_THAT(checkpoint_steps(all), ElementsAre(30, 40));
}

TEST_F(TrainerCheckpoint, AFolderThatIsMovedOrReplacedIsAnErrorOfTheOutput) {
  begin(folder / "run");
  const auto moved = folder / "moved", run = folder / "run";
  for (const bool replaced : {false, true}) {
    ToyObjective objective;
    Trainer trainer(Context(1), objective, observer, setup(run));
    objective.on_forward = [&](index update) {
      if (update != 25) return;
      std::filesystem::rename(run, moved);
      if (replaced) begin(run);
    };
    EXPECT_THROWS(trainer.run(), kWrite, "run: the folder of the run was moved or removed");
    EXPECT_EQ(std::filesystem::exists(run), replaced);
    if (replaced) break;
    process(moved, true, 1000);
    EXPECT_EQ(observer.updates.front().step, 21);
    std::filesystem::rename(moved, run);
  }
  EXPECT_THAT(checkpoint_steps(checkpoints_of(folder / "run")), testing::IsEmpty());
  EXPECT_FALSE(std::filesystem::exists(folder / "run/model.safetensors"));
}

TEST_F(TrainerCheckpoint, WhatWasWrittenAfterTheCheckpointIsForgotten) {
  begin(folder / "straight");
  const Outcome straight = process(folder / "straight", false, 1000);
  begin(folder / "killed");
  process(folder / "killed", false, 10);
  std::ofstream(folder / "killed/metrics.jsonl", std::ios::app) << R"({"kind":"update","step":99})"
                                                                << "\n{";
  expect_same(process(folder / "killed", true, 1000), straight);
}

TEST_F(TrainerCheckpoint, GoesOnFromANamedCheckpoint) {
  begin(folder / "run");
  const Outcome straight = process(folder / "run", false, 1000);
  from = folder / "run/checkpoints/step-000030";
  expect_same(process(folder / "run", true, 1000), straight);
  EXPECT_EQ(observer.updates.front().step, 31);
}

TEST_F(TrainerCheckpoint, WithoutACheckpointBeginsAtTheStart) {
  begin(folder / "run");
  process(folder / "run", true, 1000);
  EXPECT_EQ(observer.updates.size(), 40u);
  EXPECT_THAT(observer.notices, ElementsAre(HasSubstr("no checkpoint yet")));
}

TEST_F(TrainerCheckpoint, RefusesWhatIsNotTheSameRun) {
  begin(folder / "run");
  process(folder / "run", false, 10);
  for (std::string RunIdentity::*part :
       {&RunIdentity::model, &RunIdentity::data, &RunIdentity::tokenizer}) {
    const std::string before = identity.*part;
    identity.*part = "other";
    EXPECT_THROWS(process(folder / "run", true, 1000), kConfig,
                  "is not that of the run: fingerprint other, it began with " + before);
    identity.*part = before;
  }
}

TEST_F(TrainerCheckpoint, KnowsTheModelByAnEarlierFingerprint) {
  begin(folder / "run");
  process(folder / "run", false, 10);
  identity.model = "the same model, with more fields";
  identity.model_before = "m";
  process(folder / "run", true, 12);
  identity.model_before.clear();  // the checkpoint after it has the new one
  process(folder / "run", true, 14);
  identity.model_before = "another";
  identity.model = "m";
  EXPECT_THROWS(process(folder / "run", true, 1000), kConfig, "is not that of the run");
}

TEST_F(TrainerCheckpoint, SaysWhenBitsMayDiffer) {
  begin(folder / "run");
  process(folder / "run", false, 10);
  identity.isa = identity.version = "other";
  process(folder / "run", true, 12);
  EXPECT_THAT(observer.notices,
              ElementsAre(HasSubstr("FOVEA_ISA=i"), HasSubstr("began with fovea v")));
}

TEST_F(TrainerCheckpoint, SaysWhenBFloat16IsMultipliedAnotherWay) {
  begin(folder / "run");
  identity.products = "pairs";
  process(folder / "run", false, 10);
  EXPECT_THAT(observer.notices, ElementsAre());
  identity.products = "converted";
  process(folder / "run", true, 12);
  EXPECT_THAT(observer.notices, ElementsAre(HasSubstr("goes on where it is converted to float32")));
  process(folder / "run", true, 14);
  EXPECT_THAT(observer.notices, ElementsAre());
}

TEST_F(TrainerCheckpoint, AModelIsStoredAgainInTheTypeThatIsAskedFor) {
  const auto stored = [&] { return read_model_weights(folder / "run").at("weights"); };
  validation_loss = [](index step) { return step == 20 ? 1.0 : 2.0; };  // 20 is the best
  begin(folder / "run");
  process(folder / "run", false, 1000);
  const Tensor whole = stored();
  save_dtype = Precision::kBFloat16;
  const std::string rounded = process(folder / "run", true, 1000).model;
  EXPECT_EQ(stored().dtype(), DType::kBFloat16);
  EXPECT_EQ(process(folder / "run", true, 1000).model, rounded);
  save_dtype = Precision::kFloat32;
  process(folder / "run", true, 1000);
  EXPECT_EQ(stored().dtype(), DType::kFloat32);
  for (index i = 0; i < whole.size(); ++i) {
    EXPECT_EQ(stored().data<float>()[i], to_float(to_bfloat16(whole.data<float>()[i])));
  }
  EXPECT_THAT(observer.notices, ElementsAre());
}

TEST_F(TrainerCheckpoint, RefusesWeightsThatAreNotFinite) {
  begin(folder / "run");
  process(folder / "run", false, 10);
  const auto checkpoint = load_newest_checkpoint(folder / "run/checkpoints").checkpoint;
  std::vector<NamedFile> files;
  for (const std::string name : {"config.json", "optimizer.safetensors", "state.json"}) {
    files.push_back({name, checkpoint.bytes(name)});
  }
  Tensor weights(Shape{8});
  weights.data<float>()[2] = INFINITY;
  const std::vector<NamedTensor> tensors = {{"weights", weights}};
  files.push_back({"model.safetensors", safetensors_bytes(tensors)});
  save_checkpoint(folder / "other", 10, files, 2);
  from = folder / "other/step-000010";
  EXPECT_THROWS(process(folder / "run", true, 1000), kModelDamaged,
                "a value of weights is not finite");
}

TEST_F(TrainerCheckpoint, PassesOverADamagedCheckpoint) {
  begin(folder / "run");
  process(folder / "run", false, 25);
  std::ofstream(folder / "run/checkpoints/step-000025/optimizer.safetensors", std::ios::app) << "x";
  process(folder / "run", true, 1000);
  EXPECT_THAT(observer.notices, ElementsAre(HasSubstr("step-000025")));
  EXPECT_EQ(observer.updates.front().step, 21);
}

index step_of_model(const std::filesystem::path& run) {
  return std::stoll(read_model_weights(run).metadata.at("step"));
}

TEST_F(TrainerCheckpoint, AnotherFutureGivesUpWhatCameAfter) {
  begin(folder / "run");
  keep = 9;
  const Outcome first = process(folder / "run", false, 35);
  const index later = first.state.best_step;
  ASSERT_GT(later, 20);
  from = folder / "run/checkpoints/step-000020";
  // The same future makes the same model again: it may stay.
  process(folder / "run", true, 20);
  EXPECT_EQ(step_of_model(folder / "run"), later);
  future = Future::kOther;
  const Outcome back = process(folder / "run", true, 20);
  EXPECT_EQ(step_of_model(folder / "run"), 20);
  // 21 is its own: it stops after the update in which it was asked to.
  EXPECT_THAT(checkpoint_steps(folder / "run/checkpoints"), ElementsAre(10, 20, 21));
  EXPECT_TRUE(back.state.best_step == 20 || back.state.best_step == -1);
}

TEST_F(TrainerCheckpoint, AModelThatIsLostIsThatOfTheCheckpoint) {
  begin(folder / "run");
  process(folder / "run", false, 20);
  std::filesystem::remove(folder / "run/model.safetensors");
  process(folder / "run", true, 20);
  EXPECT_EQ(step_of_model(folder / "run"), 20);
}

TEST_F(TrainerCheckpoint, ABestModelThatIsLostComesFromItsCheckpoint) {
  begin(folder / "run");
  keep = 9;
  validation_loss = [](index step) { return step == 10 ? 1.0 : 2.0; };
  const Outcome before = process(folder / "run", false, 20);
  ASSERT_EQ(step_of_model(folder / "run"), 10);
  std::ofstream(folder / "run/model.safetensors") << "damaged";
  const Outcome after = process(folder / "run", true, 20);
  EXPECT_EQ(after.model, before.model);
  EXPECT_EQ(after.state.best_step, 10);
  EXPECT_THAT(observer.notices, ElementsAre(HasSubstr("of update 10, come from its checkpoint")));
  std::filesystem::remove(folder / "run/model.safetensors");
  std::filesystem::remove_all(folder / "run/checkpoints/step-000010");
  process(folder / "run", true, 21);
  EXPECT_GT(step_of_model(folder / "run"), 20);
  EXPECT_THAT(observer.notices, ElementsAre(HasSubstr("of update 10, are lost; those of update")));
}

TEST_F(TrainerCheckpoint, HoldsWhatItWasGiven) {
  begin(folder / "run");
  process(folder / "run", false, 10);
  EXPECT_EQ(load_newest_checkpoint(folder / "run/checkpoints").checkpoint.bytes("config.json"),
            "{}");
}

}  // namespace
}  // namespace fovea
