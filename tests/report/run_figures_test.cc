// SPDX-License-Identifier: Apache-2.0
#include "fovea/report/run_figures.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>

#include "fovea/report/terminal_plot.h"
#include "tests/report/xml.h"

namespace fovea {
namespace {

using testing::HasSubstr;
using testing::Not;

RunReport example(std::string name, std::string_view unit = "nats per text") {
  RunReport run{.name = std::move(name), .kind = {"classifier", "分类器"}, .unit = {unit, unit}};
  for (int i = 1; i <= 40; ++i) {
    const PlotPoint p{static_cast<double>(i), 1.0 / i};
    run.losses.last_batch.push_back(p);
    run.losses.running_mean.push_back(p);
    run.lr.push_back(p);
    run.gradient_norm.push_back(p);
    run.speed.push_back(p);
    if (i % 10 != 0) continue;
    run.losses.interval_mean.push_back(p);
    run.losses.training.push_back({p.x, p.y / 2});
    run.losses.validation.push_back({p.x, p.y + 1});
  }
  run.losses.best = 20;
  run.metrics = {{"accuracy", {{10, 0.5}, {20, 0.75}}}};
  run.training_metrics = {{"accuracy", {{10, 0.625}, {20, 0.875}}}};
  return run;
}

std::string inside(const std::string& figures) { return "<div>" + figures + "</div>"; }

TEST(LossFigures, OfOneRunTellItsMeansApart) {
  const RunReport run = example("a");
  const std::string html = loss_figures({.runs = {&run}, .places = {0}}, {});
  EXPECT_EQ(xml_error(inside(html)), "");
  for (const char* name :
       {"training: batch of one update", "running mean of the interval so far",
        "mean of a whole interval", "training: whole set", "validation: whole"}) {
    EXPECT_THAT(html, HasSubstr(name));
  }
  EXPECT_THAT(html, HasSubstr("best weights 1.0500"));
}

TEST(LossFigures, OfSeveralRunsHaveACurveForEach) {
  const RunReport a = example("a"), b = example("b");
  const std::string html = loss_figures({.runs = {&a, &b}, .places = {0, 3}}, {});
  EXPECT_EQ(xml_error(inside(html)), "");
  EXPECT_THAT(html, HasSubstr("Validation loss"));
  EXPECT_THAT(html, HasSubstr("class=\"curve solid r0\""));
  EXPECT_THAT(html, HasSubstr("class=\"curve solid r3\""));
}

// A running mean begins again with each interval: nothing is drawn between two.
TEST(LossFigures, RunningMeansOfSeveralRunsAreBroken) {
  const std::vector<RunReport> runs = {example("a"), example("b")};
  const std::string html = loss_figures(groups_by_unit(runs).front(), {});
  const std::size_t training = html.find("Training loss, running mean");
  ASSERT_NE(training, std::string::npos);
  const std::size_t picture = html.find("class=\"picture plot\"", training);
  const std::size_t path = html.find(" d=\"M", html.find("class=\"curve ", picture));
  const std::string curve = html.substr(path + 4, html.find('"', path + 4) - path - 4);
  EXPECT_EQ(std::count(curve.begin(), curve.end(), 'M'), 4);  // 40 updates, intervals of 10
}

TEST(LossFigures, RunsOfDifferentUnitsAreApart) {
  const std::vector<RunReport> runs = {example("a"), example("b", "nats per token"), example("c")};
  const std::vector<RunGroup> groups = groups_by_unit(runs);
  ASSERT_EQ(groups.size(), 2u);
  EXPECT_THAT(groups[0].places, testing::ElementsAre(0, 2));
  EXPECT_THAT(groups[1].places, testing::ElementsAre(1));
}

TEST(Figures, MarkWhereARunWasResumed) {
  RunReport run = example("a");
  EXPECT_THAT(loss_figures({.runs = {&run}, .places = {0}}, {}), Not(HasSubstr("resumed")));
  run.resumed = {15};
  const std::string html = loss_figures({.runs = {&run}, .places = {0}}, {});
  EXPECT_THAT(html, HasSubstr("resumed after update 15"));
  EXPECT_THAT(loss_figures({.runs = {&run}, .places = {0}}, {.language = PageLanguage::kChinese}),
              HasSubstr("在第 15 次更新之后恢复训练"));
}

TEST(Figures, SayThatTheyAreThinned) {
  const RunReport run = example("a");
  const std::string html = course_figures({&run, 1}, {.most_points = 10});
  EXPECT_EQ(xml_error(inside(html)), "");
  EXPECT_THAT(html, HasSubstr("the mean of up to 4 measurements in a row"));
  EXPECT_THAT(html, HasSubstr("class=\"band r0\""));
  EXPECT_THAT(course_figures({&run, 1}, {}), Not(HasSubstr("measurements in a row")));
}

TEST(MetricFigures, ShowTrainingAndValidationOfOneRunTogether) {
  const RunReport run = example("a");
  const std::string html = metric_figures({&run, 1}, {});
  EXPECT_EQ(xml_error(inside(html)), "");
  EXPECT_THAT(html, HasSubstr("<td>0.875</td><td>0.75</td>"));
  EXPECT_THAT(html, HasSubstr("best weights 0.7500"));
}

// The mean while the weights changed is told from what was measured at one update.
TEST(MetricFigures, TellTheRunningMeanFromWholeSets) {
  RunReport run = example("a");
  run.running_metrics = {{"accuracy", {{5, 0.25}, {10, 0.375}, {15, 0.4375}, {20, 0.5}}}};
  run.interval_metrics = {{"accuracy", {{10, 0.375}, {20, 0.5}}}};
  run.metrics.push_back({"macro_f1", {{10, 0.125}, {20, 0.3125}}});
  const std::string html = metric_figures({&run, 1}, {});
  EXPECT_EQ(xml_error(inside(html)), "");
  EXPECT_THAT(html, HasSubstr("training: running mean of the interval so far"));
  EXPECT_THAT(html, HasSubstr("<td>0.5</td><td>0.5</td><td>0.875</td><td>0.75</td>"));
  EXPECT_THAT(html, HasSubstr("best weights 0.3125"));  // of every metric
  RunReport other = run;
  other.name = "b";
  const std::vector<RunReport> both = {run, other};
  EXPECT_THAT(metric_figures(both, {}),
              HasSubstr("training batches, running mean of the interval so far"));
  run.metrics.clear();  // before the first evaluation
  run.training_metrics.clear();
  EXPECT_THAT(metric_figures({&run, 1}, {}), HasSubstr("<td>0.4375</td>"));
}

TEST(HeadFigures, HaveACurveForEachHead) {
  RunReport run = example("a");
  EXPECT_EQ(head_figures(run, 0, {}), "");
  run.entropy = {{{{1, 2}, {2, 1}}, {{1, 3}, {2, 2}}}};
  const std::string html = head_figures(run, 0, {});
  EXPECT_EQ(xml_error(inside(html)), "");
  EXPECT_THAT(html, HasSubstr("layer 1, head 2"));
  EXPECT_THAT(html, Not(HasSubstr("Largest score")));
}

TEST(MistakeFigures, AreThoseOfTheEvaluation) {
  RunReport run{.name = "a"};
  EXPECT_EQ(mistake_figures(run, PageLanguage::kEnglish), "");
  run.evaluation = ReportEvaluation{
      .confusion = ConfusionPlot{.title = "", .labels = {"x", "y"}, .counts = {5, 1, 0, 7}},
      .reliability = ReliabilityPlot{.title = "", .bars = {{0.5, 1, 4, 0.75, 0.5}}}};
  const std::string html = mistake_figures(run, PageLanguage::kChinese);
  EXPECT_EQ(xml_error("<div>" + html + "</div>"), "");
  EXPECT_THAT(html, HasSubstr("召回率"));
  EXPECT_THAT(html, HasSubstr("完美校准"));
  EXPECT_THAT(html, HasSubstr("<title>x 被预测为 y：1 / 6（16.7 %）</title>"));
  EXPECT_THAT(html, HasSubstr("0.5 到 1：4 个预测，置信度 0.7500，准确率 0.5000"));
}

std::vector<ReportLearning> points_of(const std::vector<double>& accuracies, double half) {
  std::vector<ReportLearning> points;
  index rows = 100;
  for (const double value : accuracies) {
    points.push_back({rows, {{"accuracy", value, value - half, value + half}, {"loss", 1, 0, 2}}});
    rows *= 2;
  }
  return points;
}

TEST(LearningAdvice, TellsGainsFromChance) {
  const auto english = PageLanguage::kEnglish;
  EXPECT_THAT(learning_advice(points_of({.7, .8, .85}, .01), english),
              HasSubstr("gains +0.0500: twice as many texts may gain about +0.0250 more"));
  EXPECT_THAT(learning_advice(points_of({.7, .8, .805}, .01), english), HasSubstr("no sign"));
  EXPECT_THAT(learning_advice(points_of({.7}, .01), english), HasSubstr("too few"));
  EXPECT_THAT(learning_advice(points_of({.7, .8, .85}, .01), PageLanguage::kChinese),
              HasSubstr("准确率 提高 +0.0500"));
}

TEST(LearningFigure, HasCurvesAndNumbers) {
  RunReport run{.name = "a"};
  EXPECT_EQ(learning_figure(run, PageLanguage::kEnglish, 0), "");
  run.learning = points_of({.7, .8, .85}, .01);
  const std::string html = learning_figure(run, PageLanguage::kEnglish, 0);
  EXPECT_EQ(xml_error("<div>" + html + "</div>"), "");
  EXPECT_THAT(html, HasSubstr("0.8400–0.8600"));
  EXPECT_THAT(terminal_learning(run, {}), HasSubstr("accuracy 0.8500 (0.8400 to 0.8600)"));
}

TEST(SearchFigure, HasEveryTrial) {
  RunReport run{.name = "a"};
  EXPECT_EQ(search_figure(run, PageLanguage::kEnglish, 0), "");
  run.trials = {{.trial = 1, .rows = 300, .loss = .5, .options = "--model linear"},
                {.trial = 2, .rows = 900, .on_highest = true, .loss = .4, .options = "--a <b>"}};
  const std::string html = search_figure(run, PageLanguage::kChinese, 0);
  EXPECT_EQ(xml_error("<div>" + html + "</div>"), "");
  EXPECT_THAT(html, HasSubstr("--a &lt;b&gt;"));
  EXPECT_THAT(html, HasSubstr("目前最佳"));
}

TEST(PrecisionRecallFigure, NamesItsCurves) {
  RunReport run{.name = "a"};
  run.evaluation = ReportEvaluation{
      .precision_recall = {{"good", {{.5, 1}, {1, .75}}}, {"", {{.5, .9}, {1, .7}}}}};
  const std::string html = mistake_figures(run, PageLanguage::kEnglish);
  EXPECT_EQ(xml_error("<div>" + html + "</div>"), "");
  EXPECT_THAT(html, HasSubstr("Precision over recall"));
  EXPECT_THAT(html, HasSubstr("all, micro-averaged"));
}

}  // namespace
}  // namespace fovea
