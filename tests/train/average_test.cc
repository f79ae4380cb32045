// SPDX-License-Identifier: Apache-2.0
#include "fovea/train/average.h"

#include <gmock/gmock.h>

#include <array>

#include "fovea/base/file.h"
#include "fovea/train/model_folder.h"
#include "tests/support/folder.h"
#include "tests/support/throws.h"
#include "tests/train/toy.h"

namespace fovea {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TEST(Average, IsTheMeanOfTheLastCheckpoints) {
  const TestFolder folder;
  write_model_files(folder.path(), std::vector<NamedFile>{{"config.json", "{}"}});
  ToyObjective objective;
  ToyObserver observer;
  Trainer(Context(1), objective, observer,
          toy_setup(folder.path(), {.stop_after = "20u", .save_every = "5u", .keep = 3}))
      .run();
  EXPECT_THAT(checkpoints_to_average(folder.path(), 20, 2), ElementsAre(15, 20));
  EXPECT_THAT(checkpoints_to_average(folder.path(), 15, 9), ElementsAre(10, 15));
  const std::vector<index> steps = {10, 15, 20};
  const auto mean = mean_of_checkpoints(folder.path(), steps, objective.parameters());
  ASSERT_EQ(mean.size(), 1u);
  EXPECT_EQ(mean[0].name, "weights");
  for (index i = 0; i < 8; ++i) {
    double sum = 0;
    for (const index step : steps) {
      const Checkpoint one = load_checkpoint(checkpoint_path(checkpoints_of(folder.path()), step));
      sum +=
          double{parse_safetensors(one.bytes(kWeightsName), "one").at("weights").data<float>()[i]};
    }
    EXPECT_EQ(mean[0].tensor.data<float>()[i], static_cast<float>(sum / 3));
  }
  const std::vector<index> none = {7};
  EXPECT_THROWS(mean_of_checkpoints(folder.path(), none, objective.parameters()), kNoCheckpoint,
                "step-000007");
}

// As a run would evaluate: one number that says which evaluation it was.
struct Evaluations {
  Evaluations() {
    weights.name = "weights";
    weights.value = Tensor(Shape{1});
  }
  void evaluate(BestWeights& best, index step, double goodness) {
    weights.value.data<float>()[0] = static_cast<float>(step);
    best.evaluated(step, goodness, parameters);
  }
  Parameter weights;
  std::vector<Parameter*> parameters{&weights};
};

TEST(BestWeights, AreThoseOfTheBestEvaluations) {
  const TestFolder folder;
  Evaluations run;
  BestWeights best(folder.path(), 2);
  best.go_on_from(0);
  run.evaluate(best, 10, -3.5);
  EXPECT_THAT(best.steps(), ElementsAre(10));
  run.evaluate(best, 20, -1);
  run.evaluate(best, 30, -2);
  EXPECT_THAT(best.steps(), ElementsAre(20, 30));
  run.evaluate(best, 40, -2);  // no better
  run.evaluate(best, 50, -9);
  EXPECT_THAT(best.steps(), ElementsAre(20, 30));
  run.evaluate(best, 60, -2 + 1e-15);  // by the last digits
  EXPECT_THAT(best.steps(), ElementsAre(20, 60));
  EXPECT_EQ(best.mean(run.parameters)[0].tensor.data<float>()[0], 40);
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder / "best"), {}), 2);
}

// Evaluations after the update from which the run goes on are made again.
TEST(BestWeights, OfARunThatIsResumedAreThoseOfOneThatWasNot) {
  const TestFolder folder;
  Evaluations run;
  const auto evaluations = [&](BestWeights& best, index first, index last) {
    constexpr std::array kGoodness = {5.0, 1.0, 4.0, 4.5, 2.0, 4.2};
    for (index n = first; n < last; ++n) {
      run.evaluate(best, 10 * (n + 1), kGoodness.at(static_cast<std::size_t>(n)));
    }
  };
  for (index killed = 1; killed < 6; ++killed) {
    for (index saved = 1; saved <= killed; ++saved) {
      remove_best_weights(folder.path());
      EXPECT_FALSE(std::filesystem::exists(folder / "best"));
      BestWeights before(folder.path(), 3);
      evaluations(before, 0, killed);
      BestWeights after(folder.path(), 3);
      after.go_on_from(10 * saved);
      evaluations(after, saved, 6);
      EXPECT_THAT(after.steps(), ElementsAre(10, 40, 60)) << killed << saved;
      EXPECT_NEAR(after.mean(run.parameters)[0].tensor.data<float>()[0], 110.0 / 3, 1e-5);
    }
  }
}

TEST(BestWeights, OfARunThatGoesOnWithFewerTheWorstAreForgotten) {
  const TestFolder folder;
  Evaluations run;
  BestWeights before(folder.path(), 4);
  for (const auto& [step, goodness] : {std::pair{10, 2.0}, {20, 1.0}, {30, 4.0}, {40, 1.0}}) {
    run.evaluate(before, step, goodness);
  }
  BestWeights after(folder.path(), 2);
  after.go_on_from(40);
  EXPECT_THAT(after.steps(), ElementsAre(10, 30));
  run.evaluate(after, 50, 3);
  EXPECT_THAT(after.steps(), ElementsAre(30, 50));
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder / "best"), {}), 2);
}

TEST(BestWeights, ThatAreDamagedAreForgotten) {
  const TestFolder folder;
  Evaluations run;
  BestWeights best(folder.path(), 3);
  run.evaluate(best, 10, 1);
  run.evaluate(best, 20, 2);
  write_file_atomically(folder / "best/step-000010.safetensors", "no weights");
  write_file_atomically(folder / "best/notes.txt", "mine");
  BestWeights after(folder.path(), 3);
  EXPECT_THAT(after.go_on_from(30, 2),
              ElementsAre(HasSubstr((folder / "best/step-000010.safetensors").string())));
  EXPECT_THAT(after.steps(), ElementsAre(20));
  EXPECT_THAT(after.go_on_from(30, 2), ElementsAre());
  remove_best_weights(folder.path());
  EXPECT_EQ(read_file(folder / "best/notes.txt"), "mine");
}

TEST(BestWeights, ThatAreMissingAreSaid) {
  const TestFolder folder;
  Evaluations run;
  BestWeights best(folder.path(), 3);
  for (const index step : {10, 20, 30, 40}) run.evaluate(best, step, static_cast<double>(step));
  const auto warnings = [&](index step, index held, index count) {
    BestWeights copy(folder.path(), count);
    return copy.go_on_from(step, held);
  };
  EXPECT_THAT(warnings(40, 3, 3), ElementsAre());
  std::filesystem::remove(folder / "best/step-000020.safetensors");
  EXPECT_THAT(warnings(40, 3, 3),
              ElementsAre(HasSubstr("1 of the 3 best evaluations are missing")));
  EXPECT_THAT(warnings(40, 3, 2), ElementsAre());  // it needs no more
  EXPECT_THAT(warnings(40, 0, 3), ElementsAre());  // a checkpoint that does not say
  // That of update 40 stands in place of another one, which is made again.
  EXPECT_THAT(warnings(30, 2, 3), ElementsAre());
  std::filesystem::remove(folder / "best/step-000030.safetensors");
  EXPECT_THAT(warnings(30, 2, 3),
              ElementsAre(HasSubstr("2 of the 2 best evaluations are missing")));
}

// At the end of a run, too.
TEST(BestWeights, ThatAreDamagedMeanwhileAreAnError) {
  const TestFolder folder;
  Evaluations run;
  BestWeights best(folder.path(), 2);
  run.evaluate(best, 10, 1);
  std::filesystem::remove(folder / "best/step-000010.safetensors");
  EXPECT_THROWS(best.mean(run.parameters), kModelDamaged, "best/step-000010.safetensors");
}

}  // namespace
}  // namespace fovea
