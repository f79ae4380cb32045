// SPDX-License-Identifier: Apache-2.0
#include "fovea/report/learning.h"

#include <gmock/gmock.h>

#include "fovea/report/run_figures.h"
#include "tests/report/xml.h"

namespace fovea {
namespace {

using testing::HasSubstr;

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
