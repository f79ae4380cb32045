// SPDX-License-Identifier: Apache-2.0
#include "fovea/task/classify/evaluate.h"

#include <gmock/gmock.h>

#include <cmath>

#include "fovea/base/file.h"
#include "fovea/metrics/classification.h"
#include "fovea/task/classify/text_predictor.h"
#include "tests/support/folder.h"
#include "tests/support/throws.h"
#include "tests/task/classify/untrained_classifier.h"

namespace fovea {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using Task = ClassifierTask;

const std::vector<std::string> kTexts = {"abc", "hgf", "aaa", "bcd", "eee", "fgh", "cab", "dad"};

// A test set whose text n has the label n modulo `labels`.
std::string test_set(const TestFolder& folder, const std::vector<std::string>& labels) {
  std::string rows = "label\ttext\n";
  for (std::size_t n = 0; n < kTexts.size(); ++n) {
    rows += labels[n % labels.size()] + "\t" + kTexts[n] + "\n";
  }
  write_file_atomically(folder / "test.tsv", rows);
  return folder / "test.tsv";
}

ClassifierScore score_of(const LoadedClassifier& model, const std::string& file,
                         const ClassifierTestOptions& options = {}, int threads = 2) {
  std::vector<std::string> notes;
  return evaluate_classifier(Context(threads), model, {&file, 1}, options, notes);
}

std::vector<float> predictions_of(const LoadedClassifier& model) {
  TextPredictor predictor(Context(1), model);
  const std::vector<NamedText> texts = {kTexts.begin(), kTexts.end()};
  const Rows<const float> found = predictor.predict(texts);
  return {found.data, found.data + found.rows * found.columns};
}

TEST(EvaluateClassifier, CountsWhatIsRight) {
  const TestFolder folder;
  const LoadedClassifier model = untrained_classifier(Task::kSingleLabel, {"x", "y"});
  const std::vector<float> p = predictions_of(model);
  index right = 0;
  double loss = 0;
  for (std::size_t n = 0; n < kTexts.size(); ++n) {
    const std::size_t truth = n % 2, chosen = p[2 * n + 1] > p[2 * n] ? 1 : 0;
    right += truth == chosen ? 1 : 0;
    loss -= std::log(double{p[2 * n + truth]}) / 8;
  }
  ASSERT_GT(right, 0);
  ASSERT_LT(right, 8);
  const ClassifierScore score = score_of(model, test_set(folder, {"x", "y"}), {.mistakes = 100});
  EXPECT_EQ(score.examples, 8);
  EXPECT_EQ(score.classes->accuracy.value, static_cast<double>(right) / 8);
  EXPECT_NEAR(score.probabilities->log_loss.value, loss, 1e-6);
  EXPECT_EQ(score.confusion->at(0, 0) + score.confusion->at(1, 1), right);
  EXPECT_THAT(score.support(), ElementsAre(4, 4));
  EXPECT_EQ(score.reliability->examples, 8);
  EXPECT_TRUE(score.second_class.has_value());
  ASSERT_EQ(static_cast<index>(score.mistakes.size()), 8 - right);
  for (std::size_t i = 1; i < score.mistakes.size(); ++i) {
    EXPECT_GE(score.mistakes[i - 1].loss, score.mistakes[i].loss);
  }
}

TEST(EvaluateClassifier, TheWorstMistakesHaveTheirPlaces) {
  const TestFolder folder;
  const LoadedClassifier model = untrained_classifier(Task::kSingleLabel, {"x", "y"});
  const std::string file = test_set(folder, {"x", "y"});
  const ClassifierScore all = score_of(model, file, {.mistakes = 100});
  const ClassifierScore one = score_of(model, file, {.mistakes = 1});
  ASSERT_EQ(one.mistakes.size(), 1U);
  const Mistake& worst = one.mistakes[0];
  EXPECT_EQ(worst.line, all.mistakes[0].line);
  EXPECT_EQ(worst.file, file);
  EXPECT_EQ(worst.text, kTexts[static_cast<std::size_t>(worst.line) - 2]);
  EXPECT_NE(worst.truth, worst.predicted);
  EXPECT_NEAR(worst.loss, -std::log(worst.truth_probability), 1e-6);
  EXPECT_NEAR(worst.truth_probability + worst.probability, 1, 1e-6);
  EXPECT_TRUE(score_of(model, file).mistakes.empty());
}

TEST(EvaluateClassifier, AnyNumberOfThreadsGivesTheSame) {
  const TestFolder folder;
  const LoadedClassifier model = untrained_classifier(Task::kSingleLabel, {"x", "y", "z"}, "conv3");
  const std::string file = test_set(folder, {"x", "y", "z"});
  EXPECT_EQ(json_of_score(score_of(model, file, {.mistakes = 4}, 1)).line(),
            json_of_score(score_of(model, file, {.mistakes = 4}, 3)).line());
}

TEST(EvaluateClassifier, SeveralLabels) {
  const TestFolder folder;
  const LoadedClassifier model = untrained_classifier(Task::kMultiLabel, {"x", "y", "z"});
  const std::string file = test_set(folder, {"x;z", "y"});
  const ClassifierScore score =
      score_of(model, file, {.table = {.label_separator = ";"}, .mistakes = 8});
  EXPECT_THAT(score.support(), ElementsAre(4, 4, 4));
  EXPECT_EQ(score.reliability->examples, 24);
  const std::vector<float> p = predictions_of(model);
  double loss = 0, right = 0;
  for (std::size_t n = 0; n < kTexts.size(); ++n) {
    bool all = true;
    for (std::size_t k = 0; k < 3; ++k) {
      const bool has = n % 2 == 0 ? k != 1 : k == 1;
      const double q = p[3 * n + k];
      loss -= std::log(has ? q : 1 - q) / 8;
      all = all && has == (q >= 0.5);
    }
    right += all ? 1.0 / 8 : 0;
  }
  EXPECT_NEAR(score.loss->value, loss, 1e-5);
  EXPECT_EQ(score.multilabel->subset_accuracy.value, right);
  EXPECT_EQ(static_cast<double>(score.mistakes.size()), 8 * (1 - right));
}

TEST(EvaluateClassifier, Numbers) {
  const TestFolder folder;
  LoadedClassifier model = untrained_classifier(Task::kRegression, {});
  // float32 knows no difference between such numbers: they are compared as doubles.
  model.numbers = {.center = 1.7e9, .scale = 3};
  const ClassifierScore score = score_of(
      model, test_set(folder, {"1700000001.5", "1699999998", "1700000007"}), {.mistakes = 2});
  const std::vector<float> p = predictions_of(model);
  double mse = 0, worst = 0;
  for (std::size_t n = 0; n < kTexts.size(); ++n) {
    const double truth = n % 3 == 0 ? 1.5 : n % 3 == 1 ? -2 : 7, error = truth - 3 * double{p[n]};
    mse += error * error / 8;
    worst = std::max(worst, error * error);
  }
  EXPECT_NEAR(score.numbers->mse.value, mse, 1e-5);
  ASSERT_EQ(score.mistakes.size(), 2U);
  EXPECT_NEAR(score.mistakes[0].loss, worst, 1e-5);
}

TEST(EvaluateClassifier, ALabelThatTheModelDoesNotKnowIsAnError) {
  const TestFolder folder;
  const LoadedClassifier model = untrained_classifier(Task::kSingleLabel, {"positive", "negative"});
  const std::string file = test_set(folder, {"positive", "negativ"});
  EXPECT_THROWS(score_of(model, file), kInputFormat,
                "test.tsv:3: expected a label that the model knows, got negativ");
  EXPECT_THAT(error_of([&] { score_of(model, file); })->hint(), HasSubstr("did you mean negative"));
  const auto error = error_of([&] { score_of(model, test_set(folder, {"1", "2"})); });
  EXPECT_EQ(error->hint(), "the labels of the model are: positive, negative");
}

TEST(EvaluateClassifier, OneTextHasOneLabel) {
  const TestFolder folder;
  const LoadedClassifier model = untrained_classifier(Task::kSingleLabel, {"x", "y"});
  EXPECT_THROWS(
      score_of(model, test_set(folder, {"x", "x;y"}), {.table = {.label_separator = ";"}}),
      kInputFormat, "test.tsv:3: expected one label, got 2");
}

TEST(EvaluateClassifier, OptionsAreChecked) {
  const TestFolder folder;
  const LoadedClassifier model = untrained_classifier(Task::kSingleLabel, {"x", "y"});
  const std::string file = test_set(folder, {"x", "y"});
  EXPECT_THROWS(score_of(model, file, {.threshold = 2}), kOptionValue, "--threshold");
  EXPECT_THROWS(score_of(model, file, {.mistakes = -1}), kOptionValue, "--errors");
}

}  // namespace
}  // namespace fovea
