// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include "fovea/report/run_figures.h"
#include "tests/report/xml.h"

namespace fovea {
namespace {

using testing::HasSubstr;

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

}  // namespace
}  // namespace fovea
