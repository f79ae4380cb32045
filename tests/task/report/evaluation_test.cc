// SPDX-License-Identifier: Apache-2.0
#include "fovea/task/report/evaluation.h"

#include <gmock/gmock.h>

#include "tests/support/throws.h"
#include "tests/task/classify/tiny.h"

namespace fovea {
namespace {

constexpr const char* kClassifier = R"({"task":"binary","examples":4,"truncated":0,
  "confidence":0.95,"accuracy":{"value":0.75,"low":0.3,"high":0.95},
  "loss":{"value":0.5,"low":null,"high":null},
  "labels":[{"label":"x"},{"label":"\u202ey"}],"confusion":[[1,1],[0,2]],
  "reliability":{"ece":0.1,"mce":0.2,"bins":[
    {"low":0,"high":0.5,"count":0,"confidence":0,"accuracy":0},
    {"low":0.5,"high":1,"count":4,"confidence":0.8,"accuracy":0.75}]},"mistakes":[]})";

TEST(ReadEvaluation, OfAClassifier) {
  const TestFolder folder;
  const auto [kind, found, model] = read_evaluation(write_file(folder, "eval.json", kClassifier));
  EXPECT_EQ(model, "");  // it does not say its model
  EXPECT_EQ(kind, ModelKind::kClassifier);
  ASSERT_EQ(found.numbers.size(), 2u);
  EXPECT_EQ(found.numbers[0].name, "accuracy");
  EXPECT_EQ(found.numbers[0].low, 0.3);
  ASSERT_TRUE(found.confusion.has_value());
  EXPECT_THAT(found.confusion->counts, testing::ElementsAre(1, 1, 0, 2));
  EXPECT_EQ(found.confusion->labels[1], "\\u{202E}y");
  ASSERT_TRUE(found.reliability.has_value());
  EXPECT_EQ(found.reliability->bars[1].accuracy, 0.75);
  EXPECT_FALSE(found.of_decisions);
}

constexpr const char* kScores =
    R"("support":3,"predicted":2,"precision":{"value":1,"low":1,"high":1},)"
    R"("recall":{"value":0.5,"low":0.25,"high":0.75},"f1":{"value":0.6,"low":0.5,"high":0.7}}])";

TEST(ReadEvaluation, ClassesAndMistakesOfAClassifier) {
  const TestFolder folder;
  const std::string text =
      std::string(R"({"task":"multi-label","confidence":0.95,)"
                  R"("macro_f1":{"value":0.75,"low":0.3,"high":0.95},"labels":[{"label":"x",)") +
      kScores +
      R"(,"mistakes":[{"file":"a.tsv","line":4,"text":"why\u0007","loss":2.5,)"
      R"("labels":[],"predicted":["x","y"]}]})";
  const ReportEvaluation found = read_evaluation(write_file(folder, "eval.json", text)).evaluation;
  EXPECT_EQ(found.class_name.english, "label");
  ASSERT_EQ(found.classes.size(), 1u);
  EXPECT_EQ(found.classes[0].name, "x");
  EXPECT_EQ(found.classes[0].support, 3);
  EXPECT_EQ(found.classes[0].recall, 0.5);
  EXPECT_EQ(found.classes[0].f1.high, 0.7);
  ASSERT_EQ(found.mistakes.size(), 1u);
  EXPECT_EQ(found.mistakes[0].place, "a.tsv:4");
  EXPECT_EQ(found.mistakes[0].text, "why\\u{7}");
  EXPECT_EQ(found.mistakes[0].truth, "–");
  EXPECT_EQ(found.mistakes[0].predicted, "x, y");
  EXPECT_EQ(found.mistakes[0].loss, 2.5);
}

TEST(ReadEvaluation, TypesAndMistakesOfATagger) {
  const TestFolder folder;
  const auto read = [&](const std::string& task, const std::string& mistake) {
    const std::string text =
        R"({"task":")" + task + R"(","confidence":0.9,"f1":{"value":0.5,"low":0.2,"high":0.8},)" +
        R"("types":[{"type":"LOC",)" + kScores + R"(,"mistakes":[)" + mistake + "]}";
    return read_evaluation(write_file(folder, "eval.json", text)).evaluation;
  };
  const ReportEvaluation tags =
      read("tag", R"({"file":"t","line":7,"words":["in","Bonn","now"],"tags":["O","B-LOC","O"],)"
                  R"("predicted":["O","O","O"],"wrong":1})");
  EXPECT_EQ(tags.class_name.english, "type");
  EXPECT_EQ(tags.classes.at(0).name, "LOC");
  EXPECT_EQ(tags.mistakes.at(0).text, "in Bonn now");
  EXPECT_EQ(tags.mistakes.at(0).truth, "Bonn/B-LOC");
  EXPECT_EQ(tags.mistakes.at(0).predicted, "Bonn/O");
  const ReportEvaluation words =
      read("segment", R"({"file":"t","line":7,"words":["大","学","生"],"tags":["B","E","S"],)"
                      R"("predicted":["S","B","E"],"wrong":3})");
  EXPECT_EQ(words.mistakes.at(0).text, "大学生");
  EXPECT_EQ(words.mistakes.at(0).truth, "大学 生");
  EXPECT_EQ(words.mistakes.at(0).predicted, "大 学生");
  EXPECT_THROWS(read("tag", R"({"file":"t","line":7,"words":["in"],"tags":[],"predicted":[]})"),
                kInputFormat, "other numbers of words and tags");
}

TEST(ReadEvaluation, OfALanguageModel) {
  const TestFolder folder;
  const auto [kind, found, model] = read_evaluation(write_file(
      folder, "eval.json", R"({"loss":1.5,"perplexity":4.48,"bits_per_byte":null,"tokens":9})"));
  EXPECT_EQ(kind, ModelKind::kLanguageModel);
  ASSERT_EQ(found.numbers.size(), 3u);
  EXPECT_EQ(found.numbers[1].value, 4.48);
  EXPECT_FALSE(found.confusion.has_value());
}

TEST(ReadEvaluation, OfATranslator) {
  const TestFolder folder;
  const auto [kind, found, model] = read_evaluation(write_file(
      folder, "eval.json",
      R"({"task":"translate","loss":2,"perplexity":7.39,"sentences":3,"references":1,)"
      R"("metrics":[{"name":"BLEU","score":31.5,"signature":"x"},{"name":"TER","score":50}]})"));
  std::vector<std::string> names;
  for (const ReportNumber& number : found.numbers) names.push_back(number.name);
  EXPECT_EQ(names, (std::vector<std::string>{"loss", "perplexity", "BLEU", "TER"}));
  EXPECT_EQ(found.numbers[2].value, 31.5);
  EXPECT_EQ(kind, ModelKind::kTranslator);
}

TEST(ReadEvaluation, OfATagger) {
  const TestFolder folder;
  const std::string one =
      R"({"task":"tag","confidence":0.9,"accuracy":{"value":0.5,"low":0.25,"high":0.75},)"
      R"("types":[{"type":"x<"}],"confusion":[[3,1],[0,2]]})";
  const auto [kind, found, model] = read_evaluation(write_file(folder, "one.json", one));
  EXPECT_EQ(kind, ModelKind::kTagger);
  EXPECT_EQ(found.confidence, 0.9);
  EXPECT_EQ(found.numbers[0].name, "accuracy");
  ASSERT_TRUE(found.confusion.has_value());
  EXPECT_EQ(found.confusion->labels, (std::vector<std::string>{"x<", "none"}));
  EXPECT_EQ(found.confusion->counts, (std::vector<index>{3, 1, 0, 2}));
  const auto [kind_of_several, several, none] = read_evaluation(write_file(
      folder, "several.json",
      R"({"mean":0.6,"columns":[{"column":"2","task":"tag","confidence":0.9,)"
      R"("accuracy":{"value":0.5,"low":0.25,"high":0.75}},{"column":"upos","task":"tag",)"
      R"("confidence":0.9,"accuracy":{"value":0.7,"low":0.5,"high":0.8}}]})"));
  std::vector<std::string> names;
  for (const ReportNumber& number : several.numbers) names.push_back(number.name);
  EXPECT_EQ(names, (std::vector<std::string>{"mean", "accuracy_2", "accuracy_upos"}));
  EXPECT_EQ(kind_of_several, ModelKind::kTagger);
  EXPECT_EQ(several.numbers[0].value, 0.6);
  EXPECT_EQ(several.numbers[2].value, 0.7);
  EXPECT_FALSE(several.confusion.has_value());
  for (const char* bad :
       {R"({"columns":[]})", R"({"mean":0.6,"columns":3})",
        R"({"mean":0.6,"columns":[{"confidence":0.9,"accuracy":{"value":1}}]})"}) {
    EXPECT_THROWS(read_evaluation(write_file(folder, "bad.json", bad)), kInputFormat,
                  "not an evaluation");
  }
}

TEST(ReadEvaluation, RefusesOtherFiles) {
  const TestFolder folder;
  const auto read = [&](std::string text) {
    return read_evaluation(write_file(folder, "eval.json", text));
  };
  const auto changed = [](std::string_view from, std::string_view to) {
    std::string text = kClassifier;
    return text.replace(text.find(from), from.size(), to);
  };
  EXPECT_THROWS(read_evaluation(folder / "none.json"), kMissingInput, "none.json");
  EXPECT_THROWS(read(""), kInputFormat, "not an evaluation of fovea");
  EXPECT_THROWS(read("[]"), kInputFormat, "not an evaluation of fovea");
  EXPECT_THROWS(read("{}"), kInputFormat, "loss");
  EXPECT_THROWS(read(changed("[1,1],", "")), kInputFormat, "rows for 2 labels");
  EXPECT_THROWS(read(changed("[1,1]", "[1]")), kInputFormat, "another length");
  EXPECT_THROWS(read(changed("[1,1]", "[1,-1]")), kInputFormat, "negative");
  EXPECT_THROWS(read(changed("[1,1]", "[1,9000000000000000000]")), kInputFormat, "10^12");
  EXPECT_THROWS(read(changed("\"confidence\":0.8", "\"confidence\":8")), kInputFormat, "outside");
  EXPECT_THROWS(read(changed("\"task\":\"binary\"", "\"task\":3")), kInputFormat,
                "not an evaluation of fovea");
  EXPECT_THROWS(read(changed("\"task\":\"binary\"", "\"task\":\"paint\"")), kInputFormat,
                "its task is paint");
}

}  // namespace
}  // namespace fovea
