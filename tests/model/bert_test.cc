// SPDX-License-Identifier: Apache-2.0
// BERT's layers. That they compute what transformers computes is shown by tests/cli/test_embed.py.
#include "fovea/model/bert.h"

#include <gtest/gtest.h>

#include <vector>

#include "fovea/base/error.h"
#include "fovea/grad/ops.h"
#include "fovea/model/pass_plan.h"
#include "fovea/reference/gradcheck.h"

namespace fovea {
namespace {

BertConfig small_config() {
  return {.vocabulary = 7, .width = 4, .layers = 2, .heads = 2, .ff = 6, .block = 5, .pools = true};
}

const std::int32_t kIds[] = {3, 1, 4, 1, 5, 6, 2}, kTypes[] = {0, 0, 1, 1, 0, 1, 1},
                   kOffsets[] = {0, 4, 7};

BertBatch batch() {
  return {.texts = {.ids = {kIds, 7}, .offsets = {kOffsets, 3}}, .types = {kTypes, 7}};
}

TEST(Bert, HasTheParametersOfBertBase) {
  const Bert base({.vocabulary = 30522,
                   .width = 768,
                   .layers = 12,
                   .heads = 12,
                   .ff = 3072,
                   .block = 512,
                   .pools = true},
                  {.memory = ParameterMemory::kShapesOnly});
  index held = 0, vectors = 0;
  for (const Parameter* parameter : base.parameters()) {
    ++held;
    vectors += parameter->decay == Decay::kNo ? 1 : 0;
  }
  EXPECT_EQ(held, 5 + 12 * 12 + 2);
  EXPECT_GT(vectors, 0);
}

// All parameters, through positions, types, blocks and the pooler.
TEST(Bert, GradientsAreThoseOfTheForward) {
  for (const double dropout : {0.0, 0.3}) {
    BertConfig config = small_config();
    config.dropout = dropout;
    const Bert model(config, {.seed = 2, .dtype = DType::kFloat64});
    std::uint64_t number = 0;
    for (Parameter* parameter : model.parameters()) {
      initialise(parameter->value, Init::normal(0.5), Random(3, RandomUse::kTest, number++));
    }
    const GradientReport report = check_gradients(Context(2), model.parameters(), [&](Tape& tape) {
      BertBatch one = batch();
      one.dropout = {1, 2, 3};
      const Variable y = model.pooled(tape, model.forward(tape, one));
      return sum(tape, multiply(tape, y, y));
    });
    EXPECT_LT(report.error, 1e-6) << report.where;
  }
}

TEST(Bert, ATextHasItsBitsWhateverStandsBesideIt) {
  const Bert model(small_config());
  Tape tape(Context(2), TapeMode::kInference);
  const BertRows both = model.forward(tape, batch());
  const std::vector<float> second(both.rows.value<float>()[4], both.rows.value<float>()[4] + 12);
  tape.reset();
  const std::int32_t offsets[] = {0, 3};
  const BertRows alone = model.forward(
      tape, {.texts = {.ids = {kIds + 4, 3}, .offsets = {offsets, 2}}, .types = {kTypes + 4, 3}});
  const float* const found = alone.rows.value<float>()[0];
  EXPECT_EQ(std::vector<float>(found, found + 12), second);
}

TEST(Bert, GivesTheRowsOfEveryLayer) {
  const Bert model(small_config());
  Tape tape(Context(1), TapeMode::kInference);
  std::vector<Variable> hidden(3);
  BertBatch one = batch();
  one.hidden = hidden;
  const BertRows found = model.forward(tape, one);
  for (const Variable& rows : hidden) EXPECT_EQ(rows.value<float>().rows, 7);
  EXPECT_EQ(hidden[2].value<float>().data, found.rows.value<float>().data);
  std::vector<Variable> few(2);
  one.hidden = few;
  EXPECT_THROW(model.forward(tape, one), Error);
}

TEST(Bert, RefusesWhatItHasNoRowFor) {
  const Bert model(small_config());
  const auto refuses = [&](std::vector<std::int32_t> ids, std::vector<std::int32_t> types) {
    Tape tape(Context(1), TapeMode::kInference);
    const std::int32_t offsets[] = {0, static_cast<std::int32_t>(ids.size())};
    try {
      model.forward(tape, {.texts = {.ids = ids, .offsets = {offsets, 2}}, .types = types});
    } catch (const Error& error) {
      return error.code() == ErrorCode::kShape;
    }
    return false;
  };
  EXPECT_FALSE(refuses({1, 2}, {0, 1}));
  EXPECT_TRUE(refuses({1, 7}, {0, 1}));
  EXPECT_TRUE(refuses({1, 2}, {0, 2}));
  EXPECT_TRUE(refuses({1, 2}, {0}));
  EXPECT_TRUE(refuses({1, 1, 1, 1, 1, 1}, {}));
}

TEST(Bert, ForeseesTheMemoryOfAPass) {
  BertConfig config = small_config();
  config.width = 64;
  config.ff = 256;
  config.block = 128;
  const PassCost cost = plan_pass(
      Context(1), config, {.tokens = 1024, .mode = TapeMode::kInference, .sequences = 1024});
  EXPECT_GT(cost.bytes(), 1024.0 * 64 * 4);
  EXPECT_LT(cost.bytes(), 64e6);
}

}  // namespace
}  // namespace fovea
