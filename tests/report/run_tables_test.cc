// SPDX-License-Identifier: Apache-2.0
#include "fovea/report/run_tables.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "tests/report/xml.h"

namespace fovea {
namespace {

using testing::HasSubstr;
using testing::Not;

constexpr PageLanguage kEnglish = PageLanguage::kEnglish;

TEST(PointsTable, HasEveryPoint) {
  const std::vector<PlotPoint> losses = {{10, 1.25}, {20, NAN}, {30, 0.75}};
  const std::vector<PlotPoint> others = {{15, 4}, {30, 5e-7}};
  const Series series[] = {series_of("a<b>", losses, 10), series_of("other", others, 10)};
  const std::string html = points_table(series, kEnglish);
  EXPECT_EQ(xml_error(html), "");
  EXPECT_THAT(html, HasSubstr("<bdi>a&lt;b&gt;</bdi>"));
  EXPECT_THAT(html, HasSubstr("<th scope=\"row\">10</th><td>1.25</td><td></td>"));
  EXPECT_THAT(html, HasSubstr("<th scope=\"row\">15</th><td></td><td>4</td>"));
  EXPECT_THAT(html, HasSubstr("<th scope=\"row\">20</th><td>–</td><td></td>"));
  EXPECT_THAT(html, HasSubstr("<th scope=\"row\">30</th><td>0.75</td><td>5e-07</td>"));
  EXPECT_EQ(points_table({}, kEnglish), "");
}

TEST(PointsTable, OfGroupsHasMeanLowestAndHighest) {
  const std::vector<PlotPoint> losses = {{1, 1}, {2, 2}, {3, 6}, {4, 4}};
  const Series series[] = {series_of("loss", losses, 2)};
  const std::string html = points_table(series, kEnglish);
  EXPECT_THAT(html, HasSubstr("<th scope=\"row\">1–2</th><td>1.5 [1, 2]</td>"));
  EXPECT_THAT(html, HasSubstr("<th scope=\"row\">3–4</th><td>5 [4, 6]</td>"));
}

std::vector<RunReport> two_runs() {
  RunReport a{.name = "a", .kind = {"classifier", "分类器"}, .unit = {"nats", "nat"}};
  a.settings = {{"recipe.lr", "0.1", "0.1"}, {"model.width", "8", "8"}};
  a.losses.validation = {{5, 2}, {10, 1.5}};
  a.losses.best = 10;
  a.updates = 10;
  a.metrics = {{"accuracy", {{5, 0.5}, {10, 0.75}}}};
  RunReport b = a;
  b.name = "b";
  b.is_running = true;
  b.settings = {{"recipe.lr", "0.2", "0.3"}, {"model.width", "8", "8"}, {"text.x", "<b>", "<b>"}};
  return {a, b};
}

TEST(SettingsTable, HighlightsWhatDiffers) {
  const std::string html = settings_table(two_runs(), kEnglish);
  const std::size_t same = html.find("<details>");
  ASSERT_NE(same, std::string::npos);
  const std::string differing = html.substr(0, same);
  EXPECT_THAT(differing, HasSubstr("<tr class=\"differs\"><th scope=\"row\">recipe.lr</th>"));
  EXPECT_THAT(differing, HasSubstr("since it was resumed: <bdi>0.3</bdi>"));
  EXPECT_THAT(differing, HasSubstr("text.x"));
  EXPECT_THAT(differing, HasSubstr("&lt;b&gt;"));
  EXPECT_THAT(differing, Not(HasSubstr("model.width")));
  EXPECT_THAT(html.substr(same), HasSubstr("model.width"));
}

TEST(SummaryTable, SaysWhatWasReached) {
  const std::string html = summary_table(two_runs(), kEnglish);
  EXPECT_EQ(xml_error(html), "");
  EXPECT_THAT(html, HasSubstr("<td>1.5</td><td>10</td><td>1.5</td><td>accuracy 0.75</td>"));
  EXPECT_THAT(html, HasSubstr("in training"));
  RunReport solved = two_runs()[0];  // its evaluations are of settings that were tried
  solved.updates = 0;
  EXPECT_THAT(summary_table({&solved, 1}, kEnglish),
              HasSubstr("<td>–</td><td>–</td><td>0:00</td><td>1.5</td><td>–</td>"));
  RunReport several = two_runs()[0];
  several.metrics.push_back({"span_f1", {{5, 0.25}, {10, 0.5}}});
  EXPECT_THAT(summary_table({&several, 1}, kEnglish),
              HasSubstr("<td>accuracy 0.75<br/>span_f1 0.5</td>"));
  several.metrics = {{"a", {{10, 1}}},
                     {"b", {{10, 2}}},
                     {"c", {{10, 3}}},
                     {"d", {{10, 4}}},
                     {"mean", {{10, 2.5}}}};
  EXPECT_THAT(summary_table({&several, 1}, kEnglish),
              HasSubstr("<td>a 1<br/>b 2<br/>c 3<br/>mean 2.5</td>"));
  EXPECT_THAT(summary_table(two_runs(), PageLanguage::kChinese), HasSubstr("分类器"));
}

TEST(FactsTable, HasARowForEachNameAndADashForWhatIsUnknown) {
  std::vector<RunReport> runs = two_runs();
  runs[0].environment = {{{"threads", "线程数"}, "2"}};
  runs[1].environment = {{{"threads", "线程数"}, "4"}, {{"processor", "处理器"}, "A & B"}};
  const std::string html = facts_table(runs, &RunReport::environment, kEnglish);
  EXPECT_THAT(html, HasSubstr("<bdi>2</bdi></td><td class=\"text\"><bdi>4</bdi>"));
  EXPECT_THAT(html, HasSubstr("–</td><td class=\"text\"><bdi>A &amp; B</bdi>"));
  EXPECT_EQ(facts_table(runs, &RunReport::data, kEnglish), "");
}

TEST(EvaluationsTable, HasIntervals) {
  std::vector<RunReport> runs = two_runs();
  runs[1].evaluation = ReportEvaluation{.numbers = {{"accuracy", 0.9, 0.85, 0.95}, {"loss", 0.5}}};
  const std::string html = evaluations_table(runs, kEnglish);
  EXPECT_THAT(html, HasSubstr("95 % interval"));
  EXPECT_THAT(html, HasSubstr("<td>0.9</td><td>0.8500–0.9500</td>"));
  EXPECT_THAT(html, HasSubstr("<td>0.5</td><td>–</td>"));
  EXPECT_EQ(evaluations_table(two_runs(), kEnglish), "");
}

TEST(ClassesTable, HasARowForEachClass) {
  const ReportEvaluation evaluation{.class_name = {"class", "类别"},
                                    .classes = {{"<x>", 12, 9, 0.75, 0.5, {"f1", 0.6, 0.5, 0.7}}}};
  const std::string html = classes_table(evaluation, PageLanguage::kChinese);
  EXPECT_EQ(xml_error(html), "");
  EXPECT_THAT(html, HasSubstr("<bdi>&lt;x&gt;</bdi></th><td>12</td><td>9</td><td>0.75</td>"
                              "<td>0.5</td><td>0.6</td><td>0.5000–0.7000</td>"));
  EXPECT_THAT(html, HasSubstr("类别"));
  EXPECT_THAT(html, HasSubstr("精确率"));
  EXPECT_EQ(classes_table({}, kEnglish), "");
}

TEST(MistakesTable, ShowsTheFirstHundredAndWhatIsKnown) {
  ReportEvaluation evaluation{
      .mistakes = {{"a:1", "a <b>", "good", "bad", 0.25, 0.75, 1.5}, {"a:2", "text", "x", "y"}}};
  const std::string html = mistakes_table(evaluation, kEnglish);
  EXPECT_EQ(xml_error(html), "");
  EXPECT_THAT(html, HasSubstr("<bdi>good</bdi> <span class=\"quiet\">(0.2500)</span>"));
  EXPECT_THAT(html, HasSubstr("<td>1.5</td><td class=\"text\"><bdi>a &lt;b&gt;</bdi>"));
  EXPECT_THAT(html, HasSubstr("<bdi>y</bdi></td><td>–</td>"));
  evaluation.mistakes.assign(101, {.place = "p", .text = std::string(1000, 'x')});
  const std::string cut = mistakes_table(evaluation, kEnglish);
  EXPECT_THAT(cut, HasSubstr("The first 100 of 101."));
  EXPECT_THAT(cut, Not(HasSubstr("<th scope=\"col\">true</th>")));
  EXPECT_LT(cut.size(), 100'000u);
  EXPECT_EQ(mistakes_table({}, kEnglish), "");
}

TEST(MistakeTables, HaveEveryCount) {
  const std::string counts =
      confusion_table({.title = "", .labels = {"x", "y"}, .counts = {5, 1, 0, 7}}, kEnglish);
  EXPECT_EQ(xml_error(counts), "");
  EXPECT_THAT(counts, HasSubstr("<td>5</td><td>1</td>"));
  EXPECT_THAT(counts, HasSubstr("<td>0</td><td>7</td>"));
  const std::string bins = calibration_table(
      {.title = "", .bars = {{0, 0.5, 0, 0, 0}, {0.5, 1, 4, 0.75, 0.5}}}, kEnglish);
  EXPECT_THAT(bins, HasSubstr("<th scope=\"row\">0.5</th><td>1</td><td>4</td><td>0.75</td>"));
  EXPECT_THAT(bins, Not(HasSubstr("<td>0</td>")));
}

std::string chinese(std::string_view name) { return metric_words(name, PageLanguage::kChinese); }

TEST(MetricWords, AreTheUsualTermsAndKeepAbbreviations) {
  EXPECT_EQ(chinese("accuracy"), "准确率");
  EXPECT_EQ(chinese("macro_f1"), "宏平均 F1");
  EXPECT_EQ(chinese("weighted_precision"), "加权平均精确率");
  EXPECT_EQ(chinese("log_loss"), "对数损失");
  EXPECT_EQ(chinese("ece"), "期望校准误差（ECE）");
  EXPECT_EQ(chinese("bleu"), "BLEU");
}

TEST(MetricWords, OfATagColumnNameIt) {
  EXPECT_EQ(chinese("accuracy_upos"), "准确率（upos）");
  EXPECT_EQ(chinese("micro_f1_my_column"), "微平均 F1（my_column）");
  EXPECT_EQ(chinese("span_f1_2"), "片段 F1（2）");
}

TEST(MetricWords, LeaveEnglishAndWhatIsNotKnown) {
  EXPECT_EQ(metric_words("macro_f1", PageLanguage::kEnglish), "macro_f1");
  EXPECT_EQ(chinese("chrF2"), "chrF2");
  EXPECT_EQ(chinese("macro_x_y"), "macro_x_y");
  EXPECT_EQ(chinese("_"), "_");
  EXPECT_EQ(chinese(""), "");
}

TEST(RunCsv, HasARowForEachUpdateAndEverySeries) {
  RunReport a{.name = "a,\"b\""};
  a.losses.last_batch = {{5, 0.1}, {10, NAN}};
  a.losses.last16_mean = {{5, 1.25}};
  a.losses.running_mean = {{5, 1.5}};
  a.losses.validation = {{10, 0.25}};
  a.lr = {{5, 1e-7}};
  a.metrics = {{"accuracy", {{10, 1.0 / 3}}}};
  RunReport b{.name = "b"};
  b.losses.last_batch = {{5, 2}};
  b.metrics = {{"bleu", {{20, 31.5}}}};
  const RunReport runs[] = {a, b};
  const std::string csv = run_csv(runs);
  EXPECT_EQ(csv,
            "run,update,training_loss_batch,training_loss_last16_mean,training_loss_running_mean,"
            "training_loss_interval_mean,training_loss,validation_loss,lr,gradient_norm,targets_"
            "per_second,"
            "validation_accuracy,validation_bleu\n"
            "\"a,\"\"b\"\"\",5,0.1,1.25,1.5,,,,1e-07,,,,\n"
            "\"a,\"\"b\"\"\",10,nan,,,,,0.25,,,,0.3333333333333333,\n"
            "b,5,2,,,,,,,,,,\n"
            "b,20,,,,,,,,,,,31.5\n");
  EXPECT_TRUE(csv.starts_with(kRunCsvMark));
}

}  // namespace
}  // namespace fovea
