// SPDX-License-Identifier: Apache-2.0
#include "fovea/report/learning.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "fovea/report/run_tables.h"

namespace fovea {

namespace {

constexpr Phrase kTexts = {"texts to train on", "训练文本数"};
constexpr Phrase kNoise = {
    "From {} to {} texts {} changes by {:+.4f}, within its interval ({:.4f} to {:.4f}): there is "
    "no sign that more texts of this kind help.",
    "文本从 {} 条增加到 {} 条时，{} 变化 {:+.4f}，仍在其区间（{:.4f} 至 "
    "{:.4f}）之内：没有迹象表明更多同类文本会有帮助。"};
constexpr Phrase kWorth = {
    "From {} to {} texts {} gains {:+.4f}: twice as many texts may gain about {:+.4f} more.",
    "文本从 {} 条增加到 {} 条时，{} 提高 {:+.4f}：文本再增加一倍，预计还可提高约 {:+.4f}。"};
constexpr Phrase kFewPoints = {"There are too few texts for a learning curve.",
                               "文本太少，无法画出学习曲线。"};

bool is_loss(const ReportNumber& number) { return number.name == "loss"; }

}  // namespace

std::vector<Curve> learning_curves(const RunReport& run, PageLanguage language) {
  std::vector<Curve> curves;
  if (run.learning.empty()) return curves;
  const std::vector<ReportNumber>& names = run.learning.back().numbers;
  for (std::size_t m = 0; m < names.size(); ++m) {
    if (is_loss(names[m])) continue;
    Curve curve{.name = metric_words(names[m].name, language),
                .ink = ink_of_run(curves.size()),
                .stroke = Stroke::kSolid};
    for (const ReportLearning& point : run.learning) {
      if (m >= point.numbers.size()) continue;
      const ReportNumber& number = point.numbers[m];
      curve.points.push_back({static_cast<double>(point.rows), number.value});
      curve.spread.push_back((number.high - number.low) / 2);  // NaN: there is none
    }
    curves.push_back(std::move(curve));
  }
  return curves;
}

std::string learning_advice(std::span<const ReportLearning> points, PageLanguage language) {
  if (points.size() < 2) return std::string(kFewPoints.in(language));
  const ReportLearning &last = points.back(), &half = points[points.size() - 2];
  const ReportNumber &is = last.numbers.front(), &was = half.numbers.front();
  // A root of squared errors gains by falling.
  const double gain = is.value - was.value, width = (is.high - is.low) / 2;
  const std::string name = metric_words(is.name, language);
  if (std::abs(gain) <= width) {
    return fmt::format(fmt::runtime(kNoise.in(language)), half.rows, last.rows, name, gain, is.low,
                       is.high);
  }
  double ratio = 0.5;
  if (points.size() > 2) {
    const double before = was.value - points[points.size() - 3].numbers.front().value;
    ratio = before == 0 ? 1 : std::clamp(gain / before, 0.0, 1.0);
  }
  return fmt::format(fmt::runtime(kWorth.in(language)), half.rows, last.rows, name, gain,
                     gain * ratio);
}

std::string terminal_learning(const RunReport& run, const TerminalPlotOptions& options) {
  const PageLanguage language = options.unicode ? options.language : PageLanguage::kEnglish;
  const std::vector<Curve> curves = learning_curves(run, language);
  std::string text;
  if (!curves.empty()) {
    text = terminal_curve(fmt::format("{}: {}", run.name, curves.front().name),
                          curves.front().points, std::string(kTexts.in(language)), options);
  }
  for (const ReportLearning& point : run.learning) {
    text += fmt::format("{:>8}", point.rows);
    for (const ReportNumber& number : point.numbers) {
      text += fmt::format("  {} {:.4f} ({:.4f} to {:.4f})", number.name, number.value, number.low,
                          number.high);
    }
    text += "\n";
  }
  return text + learning_advice(run.learning, language) + "\n";
}

}  // namespace fovea
