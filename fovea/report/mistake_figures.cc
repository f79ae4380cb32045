// SPDX-License-Identifier: Apache-2.0
#include "fovea/report/mistake_figures.h"

#include <fmt/core.h>

#include "fovea/report/run_tables.h"

namespace fovea {

std::string mistake_figures(const RunReport& run, PageLanguage language) {
  constexpr Phrase kConfusion = {"Who was taken for whom", "混淆矩阵：谁被认成了谁"};
  constexpr Phrase kCalibration = {"Calibration", "校准"};
  constexpr Phrase kConfidence = {"confidence", "置信度"}, kAccuracy = {"accuracy", "准确率"};
  constexpr Phrase kProbability = {"probability", "概率"};
  constexpr Phrase kHave = {"share that has the label", "确有该标签的比例"};
  if (!run.evaluation) return {};
  std::string html;
  const auto add = [&](const Phrase& heading, std::string_view style, std::string_view picture,
                       std::string_view table) {
    html += fmt::format(
        "<figure>\n<figcaption><b>{}</b><span><bdi>{}</bdi></span></figcaption>\n<div "
        "class=\"picture {}\">\n{}</div>\n{}</figure>\n",
        heading.in(language), html_text(run.name), style, picture, table);
  };
  if (const auto& confusion = run.evaluation->confusion) {
    ConfusionPlot plot = *confusion;
    plot.title = kConfusion.in(language);
    plot.language = language;
    add(kConfusion, "matrix", draw_inline(plot), confusion_table(plot, language));
  }
  if (const auto& reliability = run.evaluation->reliability) {
    ReliabilityPlot plot = *reliability;
    plot.title = kCalibration.in(language);
    plot.language = language;
    const bool decisions = run.evaluation->of_decisions;
    plot.x_label = (decisions ? kProbability : kConfidence).in(language);
    plot.y_label = (decisions ? kHave : kAccuracy).in(language);
    add(kCalibration, "calibration", draw_inline(plot), calibration_table(plot, language));
  }
  return html;
}

}  // namespace fovea
