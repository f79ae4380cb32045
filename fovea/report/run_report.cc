// SPDX-License-Identifier: Apache-2.0
#include "fovea/report/run_report.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "fovea/base/check.h"
#include "fovea/report/html.h"
#include "fovea/report/progress.h"
#include "fovea/report/run_figures.h"
#include "fovea/report/run_tables.h"
#include "fovea/report/svg.h"

namespace fovea {

namespace {

constexpr Phrase kTitle = {"Training report", "训练报告"};
constexpr Phrase kState = {"The run", "本次训练"};
constexpr Phrase kOf = {"{} runs", "{} 次训练"};
constexpr Phrase kMade = {"Made by fovea {} on {}.", "由 fovea {} 于 {} 生成。"};
constexpr Phrase kGoesOn = {
    "The training goes on: this page shows it as it was at that time. Load it again to see more.",
    "训练仍在进行：本页显示的是上述时刻的状态。重新加载即可看到最新进展。"};
constexpr Phrase kCurves = {"Losses, {}", "损失（{}）"};
constexpr Phrase kMetrics = {"Metrics", "指标"};
constexpr Phrase kCourse = {"How the training went", "训练过程"};
constexpr Phrase kHeads = {"What attention looked like", "注意力的统计"};
constexpr Phrase kEvaluations = {"Test", "测试"};
constexpr Phrase kEachClass = {"Each {}", "各{}"};
constexpr Phrase kWorst = {"Worst mistakes", "最严重的错误"};
constexpr Phrase kSettings = {"Settings", "设置"};
constexpr Phrase kEnvironment = {"Machine and data", "机器与数据"};
constexpr Phrase kReading = {"How to read this page", "如何阅读本页"};
constexpr Phrase kNotExact = {
    "The exact loss of the whole training set was not measured; --evaluate-training measures it.",
    "没有测量整个训练集上的准确损失；训练时加 --evaluate-training 即可测量。"};
constexpr Phrase kCompareUnits = {
    "Losses of different units are in different figures. Losses per token compare only between "
    "models with the same tokenizer and the same text.",
    "单位不同的损失画在不同的图中。每词元损失只有在分词器和文本都相同时才可比较。"};
constexpr Phrase kOtherData = {
    "These runs have different data: their losses and metrics were not measured on the same "
    "examples.",
    "这些训练使用的数据不同：它们的损失和指标不是在相同样本上测得的。"};
constexpr Phrase kTooMany = {
    "Classes, mistakes, confusion, calibration and attention are left out for more than {} runs: "
    "make a page of fewer.",
    "超过 {} 次训练时，不显示各类别、错误、混淆矩阵、校准和注意力统计：请减少训练的数量。"};
constexpr Phrase kManyColours = {
    "There are eight colours; further runs have other strokes, and beyond 24 runs a stroke occurs "
    "again. The tables name every curve.",
    "颜色共八种；更多的训练用不同线型区分，超过 24 "
    "次后线型会重复。各图的数据表列出每条曲线的名称。"};
constexpr Phrase kHeadNote = {
    "Measured in training batches, before dropout. Low entropy: a head looks at few tokens. "
    "Weights "
    "alone do not explain a prediction.",
    "在训练批次上、dropout 之前测得。熵低表示一个头只关注少数词元。仅凭权重不能解释预测。"};

constexpr Phrase kFolds = {"Cross-validation", "交叉验证"};
constexpr Phrase kLearningCurve = {"Learning curve: is more data worth it?",
                                   "学习曲线：更多数据是否值得？"};
constexpr Phrase kSearched = {"Search for settings", "设置搜索"};

struct Term {
  Phrase name, meaning;
};
constexpr Term kTerms[] = {
    {{"Running mean", "运行平均"},
     {"The mean of the training loss since the last evaluation (or since the epoch began). The "
      "weights changed meanwhile and dropout was on, so it lags behind: early in a run it lies "
      "above "
      "the validation loss, and an accuracy taken in this way below that of the validation. That "
      "is "
      "no sign that the model does better on texts it has not seen.",
      "自上次评估（或本轮开始）以来训练损失的平均值。其间权重不断变化，且 dropout "
      "处于开启状态，因此它滞后于模型：训练初期会高于验证损失；同样方式得到的准确率会低于验证准确率"
      "。"
      "这并不说明模型在未见过的文本上表现更好。"}},
    {{"Whole set", "整个数据集"},
     {"Every example once, with the weights of that update, without dropout. Only such numbers of "
      "the "
      "training and the validation set compare: their distance is what the model has learned by "
      "heart.",
      "每个样本恰好一次，使用该次更新后的权重，关闭 dropout。只有这样测得的训练集与验证集数值"
      "才可相互比较：两者之差反映模型对训练数据的死记硬背。"}},
    {{"Best", "最佳"},
     {"The weights that are kept: those with the best validation (of a classifier by its metric, "
      "so "
      "their loss need not be the lowest). They were chosen by this set, so "
      "its "
      "number is a little too good. Test on texts that were not used to choose.",
      "保留下来的权重，即验证结果最好的那一次（分类器按所选指标判断，因此其损失未必最低）。既然是用"
      "验证集挑选的，该数值会略微偏乐观；"
      "请用未参与挑选的文本来测试。"}},
    {{"Between runs", "训练之间"},
     {"A difference as small as that of two seeds says nothing about settings. Repeat with other "
      "seeds before you believe it.",
      "如果差异小到与更换随机种子相当，就不能说明设置的优劣。请先用其他种子重复实验。"}},
};

std::string panel(std::string_view heading, std::string_view html) {
  if (html.empty()) return {};
  return fmt::format("<section class=\"panel\">\n<h2>{}</h2>\n{}</section>\n", heading, html);
}

std::string paragraph(std::string_view style, std::string_view html) {
  return fmt::format("<p class=\"{}\">{}</p>\n", style, html);
}

std::string figures(std::string_view html) {
  return html.empty() ? "" : fmt::format("<div class=\"figures\">\n{}</div>\n", html);
}

bool differ_in(std::span<const RunReport> runs, std::string_view fact) {
  const auto value_of = [&](const RunReport& run) -> std::string_view {
    for (const ReportFact& one : run.data) {
      if (one.name.english == fact) return one.value;
    }
    return {};
  };
  return std::any_of(runs.begin(), runs.end(),
                     [&](const RunReport& run) { return value_of(run) != value_of(runs.front()); });
}

std::string notes_of(std::span<const RunReport> runs, PageLanguage language) {
  std::string html;
  for (const RunReport& run : runs) {
    for (const Phrase& note : run.notes) {
      html += paragraph("note", fmt::format("<bdi>{}</bdi>: {}", html_text(run.name),
                                            html_text(note.in(language))));
    }
  }
  if (runs.size() > 1 && differ_in(runs, kDataFingerprint)) {
    html += paragraph("note", kOtherData.in(language));
  }
  return html;
}

std::string losses(std::span<const RunReport> runs, const FigureStyle& style) {
  const PageLanguage language = style.language;
  std::string html;
  for (const RunGroup& group : groups_by_unit(runs)) {
    std::string inside = figures(loss_figures(group, style));
    const bool any = std::any_of(group.runs.begin(), group.runs.end(), [](const RunReport* run) {
      return !run->losses.validation.empty();
    });
    const bool exact = std::any_of(group.runs.begin(), group.runs.end(), [](const RunReport* run) {
      return !run->losses.training.empty();
    });
    if (any && !exact) inside += paragraph("quiet", kNotExact.in(language));
    if (runs.size() > 1) inside += paragraph("quiet", kCompareUnits.in(language));
    html += panel(
        fmt::format(fmt::runtime(kCurves.in(language)), group.runs.front()->unit.in(language)),
        inside);
  }
  return html;
}

// A table of each evaluation below its heading, which may name what is classified.
template <class Table>
std::string of_each(std::span<const RunReport> runs, const Phrase& heading, PageLanguage language,
                    Table&& table) {
  std::string html;
  for (const RunReport& run : runs) {
    const std::string one = run.evaluation ? table(*run.evaluation, language) : std::string();
    if (one.empty()) continue;
    html += fmt::format(
        "<h3>{}{}</h3>\n{}",
        fmt::format(fmt::runtime(heading.in(language)), run.evaluation->class_name.in(language)),
        runs.size() > 1 ? ": " + bdi(run.name) : "", one);
  }
  return html;
}

std::string evaluations(std::span<const RunReport> runs, PageLanguage language) {
  std::string html = evaluations_table(runs, language);
  if (html.empty()) return {};
  std::string pictures;
  for (std::size_t r = 0; r < runs.size(); ++r) pictures += mistake_figures(runs[r], language, r);
  if (runs.size() <= kMostRunsInDetail) {
    html += of_each(runs, kEachClass, language, classes_table) + figures(pictures) +
            of_each(runs, kWorst, language, mistakes_table);
  }
  for (const RunReport& run : runs) {
    if (!run.evaluation) continue;
    html += paragraph("quiet", fmt::format("<bdi>{}</bdi>: <bdi>{}</bdi>", html_text(run.name),
                                           html_text(run.evaluation->source)));
  }
  return panel(kEvaluations.in(language), html);
}

// A panel of a figure for each run.
template <class F>
std::string panel_of_each(std::span<const RunReport> runs, const Phrase& heading,
                          PageLanguage language, F&& figure) {
  std::string html;
  for (std::size_t r = 0; r < runs.size(); ++r) html += figure(runs[r], language, r);
  return panel(heading.in(language), figures(html));
}

std::string heads(std::span<const RunReport> runs, const FigureStyle& style) {
  if (runs.size() > kMostRunsInDetail) return {};
  std::string html;
  for (std::size_t r = 0; r < runs.size(); ++r) {
    const std::string drawn = figures(head_figures(runs[r], r, style));
    if (drawn.empty()) continue;
    if (runs.size() > 1) html += fmt::format("<h3><bdi>{}</bdi></h3>\n", html_text(runs[r].name));
    html += drawn;
  }
  if (html.empty()) return {};
  return panel(kHeads.in(style.language), html + paragraph("quiet", kHeadNote.in(style.language)));
}

std::string reading(PageLanguage language) {
  std::string html = "<dl class=\"reading\">\n";
  for (const Term& term : kTerms) {
    html +=
        fmt::format("<dt>{}</dt><dd>{}</dd>\n", term.name.in(language), term.meaning.in(language));
  }
  return panel(kReading.in(language), html + "</dl>\n");
}

std::string body_of(std::span<const RunReport> runs, const RunPageOptions& options,
                    index most_points) {
  const PageLanguage language = options.language;
  const FigureStyle style{.language = language, .most_points = most_points};
  const bool running =
      std::any_of(runs.begin(), runs.end(), [](const RunReport& run) { return run.is_running; });
  std::string html =
      paragraph("quiet", fmt::format(fmt::runtime(kMade.in(language)), html_text(options.version),
                                     html_text(options.made)) +
                             (running ? fmt::format(" {}", kGoesOn.in(language)) : ""));
  html += notes_of(runs, language);
  std::string many;
  if (runs.size() > kMostRunsInDetail) {
    many = paragraph("quiet", fmt::format(fmt::runtime(kTooMany.in(language)), kMostRunsInDetail)) +
           paragraph("quiet", kManyColours.in(language));
  }
  html += panel(runs.size() == 1 ? std::string(kState.in(language))
                                 : fmt::format(fmt::runtime(kOf.in(language)), runs.size()),
                summary_table(runs, language) + many);
  html += losses(runs, style);
  html += panel(kMetrics.in(language), figures(metric_figures(runs, style)));
  html +=
      panel(kFolds.in(language), evaluations_table(runs, language, &RunReport::cross_validation));
  html += panel_of_each(runs, kLearningCurve, language, learning_figure);
  html += panel_of_each(runs, kSearched, language, search_figure);
  html += evaluations(runs, language);
  html += panel(kCourse.in(language), figures(course_figures(runs, style)));
  html += heads(runs, style);
  html += panel(kSettings.in(language), settings_table(runs, language));
  html += panel(kEnvironment.in(language), facts_table(runs, &RunReport::environment, language) +
                                               facts_table(runs, &RunReport::data, language));
  return html + reading(language);
}

std::string style_of_page() {
  const std::string light = scoped_rules(plot_rules(), ".picture") +
                            scoped_rules(plot_rules(), ".sample") +
                            scoped_rules(confusion_rules(), ".matrix") +
                            scoped_rules(reliability_rules(), ".calibration");
  const auto dark = [](std::string_view root) {
    const auto in = [&](std::string_view name) { return fmt::format("{} {}", root, name); };
    return scoped_dark_rules(plot_dark_rules(), in(".picture")) +
           scoped_dark_rules(plot_dark_rules(), in(".sample")) +
           scoped_dark_rules(confusion_dark_rules(), in(".matrix")) +
           scoped_dark_rules(reliability_dark_rules(), in(".calibration"));
  };
  return fmt::format(
      "{}@media screen {{\n{}}}\n@media screen and (prefers-color-scheme: dark) {{\n{}}}\n{}",
      light, dark(":root[data-scheme=\"dark\"]"), dark(":root:not([data-scheme=\"light\"])"),
      page_file("report.css"));
}

}  // namespace

std::string draw_run_page(std::span<const RunReport> runs, const RunPageOptions& options) {
  check(!runs.empty(), "a report needs a run");
  constexpr index kMostPoints = 1000, kFewestPoints = 30;
  std::string title(kTitle.in(options.language));
  if (runs.size() == 1) title += ": " + runs.front().name;
  const std::string style = style_of_page();
  // Many runs with long curves have fewer points each.
  for (index most = kMostPoints;; most /= 2) {
    const std::string body = body_of(runs, options, most);
    std::string page =
        draw_html({.language = options.language, .title = title, .style = style, .body = body});
    if (page.size() <= kMostPageBytes || most <= kFewestPoints) return page;
  }
}

}  // namespace fovea
