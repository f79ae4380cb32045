// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include <cmath>
#include <cstring>
#include <optional>
#include <string>

#include "fovea/base/random.h"
#include "fovea/grad/ops.h"
#include "fovea/train/optimizer.h"
#include "tests/isa.h"
#include "tests/support/throws.h"
#include "tests/support/vectors.h"

namespace fovea {
namespace {

constexpr index kRows = 60;

Tensor random_tensor(const Shape& shape, std::uint64_t number) {
  Random random(90, RandomUse::kTest, number);
  Tensor tensor(shape);
  for (float& x : tensor.vec<float>()) x = static_cast<float>(0.3 * random.normal());
  return tensor;
}

// A table and a projection; each update has two batches, and its rows are as rare as words.
struct Model {
  Parameter table, weight;
  std::vector<Parameter*> parameters{&weight, &table};
  Context context;
  Tape tape;
  std::vector<std::int32_t> ids;

  Model(RowUse use, index columns, int threads = 2, Decay decay = Decay::kYes)
      : context(threads), tape(context) {
    table.name = "table";
    table.value = random_tensor({kRows, columns}, 1);
    table.row_use = use;
    table.decay = decay;
    weight.name = "weight";
    weight.value = random_tensor({3, columns}, 2);
  }

  void draw(index update, index batch) {
    Random random(91, RandomUse::kTest, static_cast<std::uint64_t>(2 * update + batch));
    ids.clear();
    for (int n = 0; n < 7; ++n) {
      const double rank = std::pow(static_cast<double>(kRows), random.uniform(0, 1)) - 1;
      ids.push_back(static_cast<std::int32_t>(rank));
    }
  }
  void pass(index update, index batch, bool uses_all = false) {
    draw(update, batch);
    tape.reset();
    const Variable w = tape.parameter(weight);
    Variable y = linear(tape, embedding(tape, {tape.table(table), ids}), w);
    Variable loss = sum(tape, multiply(tape, y, y));
    if (uses_all) {
      const Variable z = linear(tape, tape.parameter(table), w);
      loss = add(tape, loss, sum(tape, multiply(tape, z, z)));
    }
    tape.backward(loss);
  }
};

AdamWStep step_of(index update, index updates) {
  const double t = static_cast<double>(update) / static_cast<double>(updates);
  return {.options = {.lr = 0.01 * std::min(1.0, 20 * t) * (1 - t), .weight_decay = 0.05},
          .step = update + 1};
}

struct Outcome {
  std::vector<double> norms;
  std::string values, moments;
  bool operator==(const Outcome&) const = default;
};

struct Course {
  index columns = 8, updates = 1000;
  int threads = 2;
  index saved_at = -1;  // state() is asked for before this update
  index all_at = -1;    // another op reads the whole table in this update
  Decay decay = Decay::kYes;
};

Outcome train(RowUse use, const Course& c) {
  Model model(use, c.columns, c.threads, c.decay);
  Optimizer optimizer(model.parameters);
  Outcome outcome;
  for (index u = 0; u < c.updates; ++u) {
    if (u == c.saved_at) optimizer.state();
    for (index batch = 0; batch < 2; ++batch) model.pass(u, batch, u == c.all_at);
    const double norm = optimizer.gradient_norm(model.context);
    outcome.norms.push_back(norm);
    AdamWStep step = step_of(u, c.updates);
    step.gradient_scale = clip_scale(norm, 0.05);
    optimizer.step(model.context, step);
  }
  outcome.moments = safetensors_bytes(optimizer.state());
  outcome.values = safetensors_bytes(parameter_tensors(model.parameters));
  return outcome;
}

void expect_same(const Outcome& sparse, const Outcome& dense) {
  EXPECT_TRUE(sparse.norms == dense.norms);
  EXPECT_TRUE(sparse.values == dense.values);
  EXPECT_TRUE(sparse.moments == dense.moments);
}

TEST(TableUpdates, ThousandUpdatesHaveTheBitsOfDenseOnes) {
  for_each_isa([] {
    for (const index columns : {8, 33, 64}) {
      const Course course{.columns = columns};
      const Outcome dense = train(RowUse::kDense, course);
      EXPECT_GT(dense.norms[0], 0.05) << "so gradients are clipped";
      expect_same(train(RowUse::kSparse, course), dense);
    }
    const Course constant{.columns = 20, .decay = Decay::kNo};
    expect_same(train(RowUse::kSparse, constant), train(RowUse::kDense, constant));
  });
}

TEST(TableUpdates, SameBitsForAnyNumberOfThreadsAndHoweverOftenItIsRead) {
  const Outcome dense = train(RowUse::kDense, {.updates = 300});
  expect_same(train(RowUse::kSparse, {.updates = 300, .threads = 1}), dense);
  expect_same(train(RowUse::kSparse, {.updates = 300, .threads = 4}), dense);
  expect_same(train(RowUse::kSparse, {.updates = 300, .saved_at = 150}), dense);
}

TEST(TableUpdates, AnotherOpMayUseTheWholeTable) {
  for (const index at : {0, 50, 299}) {
    const Course course{.updates = 300, .all_at = at};
    expect_same(train(RowUse::kSparse, course), train(RowUse::kDense, course));
  }
}

// A file of either goes on as either.
TEST(TableUpdates, ResumesWithTheSameBits) {
  constexpr index kUpdates = 200;
  const auto run = [&](RowUse use, index begin, index end, const Outcome* from) {
    Model model(use, 16);
    Optimizer optimizer(model.parameters);
    if (from != nullptr) {
      restore_parameters(model.parameters, parse_safetensors(from->values, "v"), "v");
      optimizer.restore(parse_safetensors(from->moments, "m"));
    }
    for (index u = begin; u < end; ++u) {
      model.pass(u, 0);
      optimizer.step(model.context, step_of(u, kUpdates));
    }
    return Outcome{{},
                   safetensors_bytes(parameter_tensors(model.parameters)),
                   safetensors_bytes(optimizer.state())};
  };
  const Outcome whole = run(RowUse::kDense, 0, kUpdates, nullptr);
  for (const RowUse first : {RowUse::kDense, RowUse::kSparse})
    for (const RowUse second : {RowUse::kDense, RowUse::kSparse}) {
      const Outcome half = run(first, 0, 90, nullptr);
      expect_same(run(second, 90, kUpdates, &half), whole);
    }
}

TEST(TableUpdates, RestoringForgetsWhatWasDue) {
  Model model(RowUse::kSparse, 4);
  Optimizer optimizer(model.parameters);
  const std::string values = safetensors_bytes(parameter_tensors(model.parameters));
  const std::string moments = safetensors_bytes(optimizer.state());
  for (index u = 0; u < 5; ++u) {
    model.pass(u, 0);
    optimizer.step(model.context, step_of(u, 10));
  }
  restore_parameters(model.parameters, parse_safetensors(values, "v"), "v");
  optimizer.restore(parse_safetensors(moments, "m"));
  EXPECT_TRUE(safetensors_bytes(parameter_tensors(model.parameters)) == values);
  EXPECT_TRUE(safetensors_bytes(optimizer.state()) == moments);
}

TEST(TableUpdates, EvaluationSeesTheUpdatesOfTheRowsItReads) {
  const auto outputs = [](RowUse use) {
    Model model(use, 5);
    Optimizer optimizer(model.parameters);
    std::vector<float> all;
    Tape tape(model.context, TapeMode::kInference);
    const std::vector<std::int32_t> ids = {0, 59, 31, 31};
    for (index u = 0; u < 40; ++u) {
      model.pass(u, 0);
      optimizer.step(model.context, step_of(u, 40));
      tape.reset();
      const auto y = to_vector(embedding(tape, {tape.table(model.table), ids}).value<float>());
      all.insert(all.end(), y.begin(), y.end());
    }
    return all;
  };
  EXPECT_TRUE(outputs(RowUse::kSparse) == outputs(RowUse::kDense));
}

TEST(TableUpdates, OtherBetasBeginAnew) {
  const auto run = [](RowUse use) {
    Model model(use, 6);
    Optimizer optimizer(model.parameters);
    for (index u = 0; u < 60; ++u) {
      model.pass(u, 0);
      AdamWStep step = step_of(u, 60);
      if (u >= 30) step.options.beta1 = 0.8;
      optimizer.step(model.context, step);
    }
    return safetensors_bytes(optimizer.state());
  };
  EXPECT_TRUE(run(RowUse::kSparse) == run(RowUse::kDense));
}

TEST(TableUpdates, EndOfTheOptimizerMakesWhatIsDue) {
  const auto run = [](RowUse use) {
    Model model(use, 6);
    {
      Optimizer optimizer(model.parameters);
      for (index u = 0; u < 30; ++u) {
        model.pass(u, 0);
        optimizer.step(model.context, step_of(u, 40));
      }
    }
    EXPECT_EQ(model.table.missed, nullptr);
    return to_vector(model.table.value.vec<float>());
  };
  EXPECT_TRUE(run(RowUse::kSparse) == run(RowUse::kDense));
}

// 200,000 rows, of which an update uses a few: the others are not written, nor is a gradient made
// for them.
TEST(TableUpdates, TouchOnlyTheRowsOfAnUpdate) {
  Parameter table;
  table.name = "table";
  table.value = Tensor({200000, 4});
  table.value.vec<float>()[4 * 1234] = 1;
  table.row_use = RowUse::kSparse;
  Parameter* const parameters[] = {&table};
  Optimizer optimizer(parameters);
  Tape tape{Context(2)};
  for (index u = 0; u < 3; ++u) {
    tape.reset();
    const std::int32_t ids[] = {7, 199999, 7};
    tape.backward(sum(tape, embedding(tape, {tape.table(table), ids})));
    EXPECT_FALSE(table.gradient.defined());
    EXPECT_EQ(table.row_gradient.size(), 2);
    EXPECT_EQ(table.row_gradient.rows<float>()[0][0], 2);
    EXPECT_NEAR(optimizer.gradient_norm(tape.context()), std::sqrt(20.0), 1e-12);
    optimizer.step(tape.context(), {.options = {.lr = 0.1, .weight_decay = 0.5}, .step = u + 1});
  }
  EXPECT_EQ(table.value.vec<float>()[4 * 1234], 1) << "a row that is behind";
  EXPECT_NEAR(table.value.vec<float>()[4 * 199999], -0.28, 0.02);
  table.catch_up();
  EXPECT_NEAR(table.value.vec<float>()[4 * 1234], std::pow(0.95, 3), 1e-6);
}

TEST(TableUpdates, SaysWhatIsWrong) {
  Model model(RowUse::kSparse, 4);
  const std::int32_t beyond[] = {0, 60};
  Optimizer optimizer(model.parameters);
  EXPECT_THROWS(embedding(model.tape, {model.tape.table(model.table), beyond}), kShape,
                "embedding: ids[1] is 60; the table has rows 0 to 59");
  EXPECT_THROWS(sum(model.tape, model.tape.table(model.table)), kShape,
                "only the rows of a step are there");
  EXPECT_THROWS(Optimizer(model.parameters), kShape, "'table' has an optimizer already");
  Parameter vector;
  vector.name = "gain";
  vector.value = Tensor(Shape{4});
  vector.row_use = RowUse::kSparse;
  Parameter* const parameters[] = {&vector};
  EXPECT_THROWS(Optimizer{parameters}, kShape, "'gain' has rows that are used by their ids");
}

}  // namespace
}  // namespace fovea
