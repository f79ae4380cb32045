// SPDX-License-Identifier: Apache-2.0
#include "fovea/task/classify/text_predictor.h"

#include <gmock/gmock.h>

#include <cstring>
#include <limits>

#include "tests/support/throws.h"
#include "tests/task/classify/untrained_classifier.h"

namespace fovea {
namespace {

using Task = ClassifierTask;

std::vector<std::string> some_texts(int count) {
  std::vector<std::string> texts;
  for (int i = 0; i < count; ++i) {
    std::string text;
    for (int n = 0; n < (i * 7) % 19; ++n) text += static_cast<char>('a' + (i * 3 + n * n) % 8);
    texts.push_back(text);
  }
  return texts;
}

std::vector<NamedText> named(const std::vector<std::string>& texts) {
  std::vector<NamedText> all;
  for (const std::string& text : texts) all.push_back({.text = text, .name = {}});
  return all;
}

std::vector<float> copy_of(Rows<const float> rows) {
  return {rows.data, rows.data + rows.rows * rows.columns};
}

// One after another, each alone, by the model itself.
std::vector<float> one_by_one(const LoadedClassifier& model,
                              const std::vector<std::string>& texts) {
  std::vector<float> all;
  Tape tape(Context(1), TapeMode::kInference);
  for (const std::string& text : texts) {
    tape.reset();
    const TextTokens read = tokens_of_text(*model.tokenizer, model.settings.text, text, "text");
    const auto tokens = static_cast<std::int32_t>(read.ids.size());
    const std::int32_t offsets[] = {0, tokens};
    const auto found =
        model.model->predictions(tape, {.ids = {read.ids.data(), tokens}, .offsets = {offsets, 2}})
            .value<float>();
    all.insert(all.end(), found[0], found[0] + found.columns);
  }
  return all;
}

class EveryEncoder : public testing::TestWithParam<const char*> {};

TEST_P(EveryEncoder, HasTheSameBitsInAnyBatchOnAnyThreads) {
  const LoadedClassifier model =
      untrained_classifier(Task::kSingleLabel, {"a", "b", "c"}, GetParam());
  const std::vector<std::string> texts = some_texts(100);
  const std::vector<float> expected = one_by_one(model, texts);
  for (const int threads : {1, 2, 3}) {
    for (const index batch : {1, 64, 8192}) {
      TextPredictor predictor(Context(threads), model, batch);
      const std::vector<float> found = copy_of(predictor.predict(named(texts)));
      ASSERT_EQ(found.size(), expected.size());
      EXPECT_EQ(std::memcmp(found.data(), expected.data(), found.size() * sizeof(float)), 0)
          << threads << " threads, " << batch << " tokens";
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Encoders, EveryEncoder,
                         testing::Values("", "attention", "conv3,bilstm", "transformer:layers=2",
                                         "gru:layers=2"));

// From as many tokens on as the table has rows; what is said before and behind has the same bits.
TEST(TextPredictor, ATableOfTokensIsMadeOnceItPays) {
  const LoadedClassifier model =
      untrained_classifier(Task::kSingleLabel, {"a", "b"}, "attention:plain:no-output");
  ASSERT_GT(model.model->token_table_columns(), 0);
  const index rows = model.model->config().vocabulary;
  TextPredictor predictor(Context(2), model);
  const std::vector<std::string> texts = some_texts(60), few = {"abcab"};
  EXPECT_EQ(copy_of(predictor.predict(named(few))), one_by_one(model, few));
  ASSERT_LT(predictor.tokens(), rows);
  EXPECT_FALSE(predictor.uses_table());
  EXPECT_EQ(copy_of(predictor.predict(named(texts))), one_by_one(model, texts));
  ASSERT_GE(predictor.tokens(), rows);
  EXPECT_TRUE(predictor.uses_table());
  EXPECT_EQ(copy_of(predictor.predict(named(few))), one_by_one(model, few));

  const LoadedClassifier without = untrained_classifier(Task::kSingleLabel, {"a", "b"}, "gru");
  TextPredictor other(Context(2), without);
  other.predict(named(texts));
  EXPECT_FALSE(other.uses_table());
}

TEST(TextPredictor, ATableOfTokensLeavesTheBatchesTheirMemory) {
  constexpr double kMiB = 1 << 20;
  EXPECT_TRUE(has_room_for_table(256 * kMiB, 100 * kMiB, 1124 * kMiB));
  EXPECT_FALSE(has_room_for_table(256 * kMiB, 101 * kMiB, 1124 * kMiB));
  EXPECT_FALSE(has_room_for_table(256 * kMiB + 1, 0, 1e15));
  EXPECT_FALSE(has_room_for_table(1, 100 * kMiB, 50 * kMiB));
}

TEST(TextPredictor, EveryTaskIsAnswered) {
  const std::vector<std::string> texts = some_texts(20);
  for (const Task task : {Task::kBinary, Task::kMultiLabel, Task::kRegression}) {
    const std::vector<std::string> labels =
        task == Task::kRegression ? std::vector<std::string>{} : std::vector<std::string>{"a", "b"};
    LoadedClassifier model = untrained_classifier(task, labels);
    model.numbers = {.center = 100, .scale = 10};  // not applied to values in the model's unit
    TextPredictor predictor(Context(2), model);
    EXPECT_EQ(copy_of(predictor.predict(named(texts))), one_by_one(model, texts));
  }
}

TEST(TextPredictor, AnEmptyTextHasAnAnswer) {
  const LoadedClassifier model = untrained_classifier(Task::kSingleLabel, {"a", "b"});
  TextPredictor predictor(Context(1), model);
  const std::vector<std::string> texts = {"", "abc", ""};
  const std::vector<float> found = copy_of(predictor.predict(named(texts)));
  EXPECT_FLOAT_EQ(found[0] + found[1], 1);
  EXPECT_EQ(found[0], found[4]);
  EXPECT_NE(found[0], found[2]);
}

TEST(TextPredictor, NoTextsHaveNoAnswers) {
  const LoadedClassifier model = untrained_classifier(Task::kSingleLabel, {"a", "b"});
  TextPredictor predictor(Context(2), model);
  EXPECT_EQ(predictor.predict({}).rows, 0);
}

TEST(TextPredictor, LongTextsAreTruncatedAndCounted) {
  const LoadedClassifier model = untrained_classifier(Task::kSingleLabel, {"a", "b"});
  TextPredictor predictor(Context(2), model);
  const std::string most(20, 'a');
  const std::vector<std::string> texts = {most, most + "bc", "b"};
  const std::vector<float> found = copy_of(predictor.predict(named(texts)));
  EXPECT_EQ(found[0], found[2]);
  EXPECT_EQ(predictor.truncated(), 1);
  predictor.predict(named(texts));
  EXPECT_EQ(predictor.truncated(), 2);
  EXPECT_EQ(predictor.texts(), 6);
  EXPECT_EQ(predictor.tokens(), 2 * (20 + 20 + 1));
}

TEST(TextPredictor, WhatIsDroppedChangesNoBit) {
  LoadedClassifier model = untrained_classifier(Task::kSingleLabel, {"a", "b"});
  std::vector<std::string> texts;
  for (int i = 0; i < 40; ++i) {
    std::string text;
    for (int n = 0; n < 400; ++n)
      text += (n * (i + 3)) % 7 == 0 ? ' ' : static_cast<char>('a' + n % 8);
    texts.push_back(text.substr(0, static_cast<std::size_t>(10 * i)));
  }
  for (const Truncate truncate : {Truncate::kEnd, Truncate::kFront}) {
    model.settings.text.truncate = truncate;
    TextPredictor predictor(Context(2), model);
    EXPECT_EQ(copy_of(predictor.predict(named(texts))), one_by_one(model, texts));
    EXPECT_EQ(predictor.truncated(), 37);
  }
}

TEST(TextPredictor, APredictionThatIsNotFiniteIsAnError) {
  const LoadedClassifier model = untrained_classifier(Task::kSingleLabel, {"a", "b"});
  for (Parameter* parameter : model.model->parameters()) {
    if (parameter->name != "output.bias") continue;
    parameter->value.data<float>()[0] = std::numeric_limits<float>::quiet_NaN();
  }
  TextPredictor predictor(Context(2), model);
  const std::vector<NamedText> texts = {{"abc", "f.txt:1"}};
  EXPECT_THROWS(predictor.predict(texts), kModelDamaged, "f.txt:1: the prediction is NaN");
}

}  // namespace
}  // namespace fovea
