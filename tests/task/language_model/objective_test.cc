// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include <cmath>

#include "fovea/task/language_model/language_model.h"
#include "fovea/train/optimizer.h"
#include "tests/task/tiny.h"

namespace fovea {
namespace {

class ObjectiveTest : public testing::Test {
 protected:
  // The loss and gradient norm of the first update, its sequences in `accumulate` batches.
  std::pair<double, double> first_update(index accumulate, std::string_view data) {
    LanguageModelSettings settings = tiny_settings(folder);
    settings.text.data = data;
    settings.text.batch_size = 12 / accumulate;
    settings.recipe.accumulate = accumulate;
    const LanguageModelRun run = prepare_run(settings);
    const LanguageModel model(run.settings.model, 1);
    LanguageModelObjective objective(context, model, run);
    targets = objective.begin_update(0);
    double loss = 0;
    for (index batch = 0; batch < accumulate; ++batch) {
      loss += objective.forward(batch);
      objective.backward();
    }
    return {loss, Optimizer(model.parameters()).gradient_norm(context)};
  }

  TestFolder folder;
  const Context context{2};
  index targets = 0;
};

// Spec T5: one batch of 12 is the mean of its parts, weighted by their tokens.
TEST_F(ObjectiveTest, AccumulatedBatchesAreOneBatch) {
  for (const std::string_view data : {"blocks", "lines"}) {
    const auto [loss, norm] = first_update(1, data);
    const index all = targets;
    EXPECT_NEAR(loss, std::log(280), 0.3);
    for (const index parts : {2, 3, 6}) {
      const auto [sum, norm_of_sum] = first_update(parts, data);
      EXPECT_EQ(targets, all);
      EXPECT_NEAR(sum, loss, 1e-6 * loss) << data;
      EXPECT_NEAR(norm_of_sum, norm, 1e-5 * norm) << data;
    }
  }
}

// Masks are named by the run's seed and the update's number: an update can be computed again, and
// none is dropped as another was.
TEST_F(ObjectiveTest, DropoutIsThatOfTheUpdate) {
  LanguageModelSettings settings = tiny_settings(folder);
  settings.model.dropout = 0.3;
  settings.recipe.accumulate = 2;
  settings.recipe.seed = 9;
  const LanguageModelRun run = prepare_run(settings);
  const LanguageModel model(run.settings.model, 1);
  LanguageModelObjective objective(context, model, run);
  for (const index update : {0, 1, 7}) {
    const auto count = static_cast<double>(objective.begin_update(update));
    for (const index number : {0, 1}) {
      const Batch batch = run.training->batch(update, number);
      const auto loss = [&](std::uint64_t seed, index step) {
        Tape tape(context);
        const auto size = static_cast<index>(batch.ids.size());
        const auto sequences = static_cast<index>(batch.samples.size());
        const TokenBatch view{{batch.ids.data(), size},
                              {batch.targets.data(), size},
                              {batch.offsets.data(), sequences + 1},
                              {batch.samples.data(), sequences}};
        const DropoutKey key{seed, static_cast<std::uint64_t>(step), 0};
        const Variable sum = model.loss(tape, view, {.scale = 1 / count, .dropout = key});
        return double{sum.value<float>()[0][0]};
      };
      const double got = objective.forward(number);
      EXPECT_EQ(got, loss(9, update));
      EXPECT_NE(got, loss(9, update + 1));
      EXPECT_NE(got, loss(8, update));
    }
  }
}

TEST_F(ObjectiveTest, ValidationIsTheMeanOverAllTargets) {
  const LanguageModelRun run = prepare_run(tiny_settings(folder));
  const LanguageModel model(run.settings.model, 1);
  Tape tape(context);
  const SetLoss loss = loss_of(tape, model, *run.validation, {}).value();
  EXPECT_EQ(loss.targets, run.validation->sequences().target_count());
  // The same set in other batches is the same up to rounding.
  const EvaluationBatches ones(run.validation->sequences(), 1);
  EXPECT_NEAR(loss_of(tape, model, ones, {})->mean(), loss.mean(), 1e-6 * loss.mean());
}

TEST_F(ObjectiveTest, ValidationCanBeInterrupted) {
  const LanguageModelRun run = prepare_run(tiny_settings(folder));
  const LanguageModel model(run.settings.model, 1);
  Tape tape(context);
  int asked = 0;
  EXPECT_FALSE(loss_of(tape, model, *run.validation, [&] { return ++asked == 2; }));
  EXPECT_EQ(asked, 2);
}

// Spec T5: a batch of 16 lines is the mean of 16 single ones, weighted by their tokens; they may
// have any lengths.
TEST_F(ObjectiveTest, ABatchOfLinesIsTheMeanOfItsLinesByTokens) {
  LanguageModelSettings settings = tiny_settings(folder);
  settings.text.tokenizer = "word";
  settings.text.data = "lines";
  settings.text.marks = false;
  settings.text.batch_size = 16;
  const LanguageModelRun run = prepare_run(settings);
  const LanguageModel model(run.settings.model, 1);
  const auto mean_loss = [&](const Batch& batch) {
    Tape tape(context);
    const auto size = static_cast<index>(batch.ids.size());
    const auto sequences = static_cast<index>(batch.samples.size());
    const TokenBatch view{{batch.ids.data(), size},
                          {batch.targets.data(), size},
                          {batch.offsets.data(), sequences + 1},
                          {batch.samples.data(), sequences}};
    const double scale = 1 / static_cast<double>(batch.target_count());
    return double{model.loss(tape, view, {.scale = scale}).value<float>()[0][0]};
  };
  // The first update of an epoch may be the last, smaller group.
  for (const index update : {0, 1, 2}) {
    const Batch whole = run.training->batch(update, 0);
    double sum = 0;
    for (const std::uint64_t sample : whole.samples) {
      const Sequences& all = run.training->sequences();
      Batch one;
      append(one, all.stream, all.slices[sample], sample);
      sum += mean_loss(one) * static_cast<double>(one.target_count());
    }
    const double expected = sum / static_cast<double>(whole.target_count());
    EXPECT_NEAR(mean_loss(whole), expected, 1e-6 * expected);
  }
}

}  // namespace
}  // namespace fovea
