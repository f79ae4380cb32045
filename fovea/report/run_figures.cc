// SPDX-License-Identifier: Apache-2.0
#include "fovea/report/run_figures.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "fovea/report/run_tables.h"

namespace fovea {

namespace {

constexpr Phrase kUpdates = {"updates", "更新次数"};
constexpr Phrase kBatch = {"training: batch of one update", "训练：单次更新的批次"};
constexpr Phrase kRunning = {"training: running mean of the interval so far",
                             "训练：区间内至今的运行平均"};
constexpr Phrase kWindow = {"training: mean of a whole interval", "训练：整个区间的平均"};
constexpr Phrase kExact = {"training: whole set, weights of that update",
                           "训练：整个训练集，用该次更新后的权重"};
constexpr Phrase kValidation = {"validation: whole set, weights of that update",
                                "验证：整个验证集，用该次更新后的权重"};
constexpr Phrase kLoss = {"Loss", "损失"};
constexpr Phrase kValidationLoss = {"Validation loss", "验证损失"};
constexpr Phrase kTrainingLoss = {"Training loss, running mean of the interval so far",
                                  "训练损失：区间内至今的运行平均"};
constexpr Phrase kExactLoss = {"Training loss, whole set, weights of that update",
                               "训练损失：整个训练集，用该次更新后的权重"};
constexpr Phrase kBest = {"best weights", "最佳权重"};
constexpr Phrase kThinned = {
    "Long curves are thinned: the line is the mean of up to {} measurements in a row, the band "
    "reaches from the lowest to the highest of them.",
    "较长的曲线经过归并：线是每组连续测量（最多 {} 个）的平均值，色带从其中最低值延伸到最高值。"};
constexpr Phrase kResumed = {"resumed after update {:.0f}", "在第 {:.0f} 次更新之后恢复训练"};
constexpr Phrase kResumedMark = {"Dotted vertical lines: the run was resumed there.",
                                 "竖直虚线：训练曾在此处中断并恢复。"};

struct Figure {
  std::string id;
  std::string heading = {}, subtitle = {};
  Plot plot = {};
  std::vector<Series> series = {};
  std::vector<std::string> words = {};  ///< below the plot, HTML
  bool has_legend = true;
};

std::string legend_of(const Plot& plot) {
  std::string html;
  for (const Curve& curve : plot.curves) {
    if (curve.stroke == Stroke::kThin) continue;
    html += fmt::format("<li>{}<bdi>{}</bdi></li>\n", draw_sample(curve), html_text(curve.name));
  }
  return html.empty() ? html : fmt::format("<ul class=\"legend\">\n{}</ul>\n", html);
}

// How many measurements a point of a thinned curve stands for; 1 if none is thinned.
index largest_group(const std::vector<Series>& series) {
  index largest = 1;
  for (const Series& one : series) {
    for (const SeriesPoint& p : one.points) largest = std::max(largest, p.count);
  }
  return largest;
}

std::string html_of(Figure figure, PageLanguage language) {
  figure.plot.language = language;
  figure.plot.title = figure.heading;
  if (figure.plot.x_label.empty()) figure.plot.x_label = kUpdates.in(language);
  if (const index group = largest_group(figure.series); group > 1) {
    figure.words.push_back(fmt::format(fmt::runtime(kThinned.in(language)), group));
  }
  const bool wide = figure.plot.place == PlotPlace::kWide;
  std::string html = fmt::format(
      "<figure{}>\n<figcaption><b>{}</b>{}</figcaption>\n", wide ? " class=\"wide\"" : "",
      html_text(figure.heading),
      figure.subtitle.empty() ? "" : fmt::format("<span>{}</span>", html_text(figure.subtitle)));
  if (figure.has_legend) html += legend_of(figure.plot);
  html += "<div class=\"picture plot\">\n" + draw_inline(figure.plot, figure.id) + "</div>\n";
  for (const std::string& words : figure.words) html += fmt::format("<p>{}</p>\n", words);
  if (!figure.series.empty()) html += points_table(figure.series, language);
  return html + "</figure>\n";
}

void add_curve(Figure& figure, Series series, Ink ink, Stroke stroke) {
  if (series.points.empty()) return;
  figure.plot.curves.push_back(curve_of(series, ink, stroke));
  figure.series.push_back(std::move(series));
}

void add_resumes(Figure& figure, const RunReport& run, PageLanguage language) {
  for (const double x : run.resumed) {
    figure.plot.marks.push_back({x, fmt::format(fmt::runtime(kResumed.in(language)), x)});
  }
  if (!run.resumed.empty()) figure.words.emplace_back(kResumedMark.in(language));
}

// Breaks the last curve of the figure, a running mean, where an interval ends. A long curve is
// thinned, and not broken.
void break_curve(Figure& figure, const std::vector<PlotPoint>& running,
                 const std::vector<PlotPoint>& intervals, const FigureStyle& style) {
  if (running.empty() || static_cast<index>(running.size()) > style.most_points) return;
  figure.plot.curves.back().points = broken_after(running, intervals);
}

// The running mean of a run and the means of its whole intervals.
void add_running(Figure& figure, const std::vector<PlotPoint>& running,
                 const std::vector<PlotPoint>& intervals, const FigureStyle& style) {
  const auto of = [&](const Phrase& name, const std::vector<PlotPoint>& points) {
    return series_of(std::string(name.in(style.language)), points, style.most_points);
  };
  add_curve(figure, of(kRunning, running), Ink::kBlue, Stroke::kDashed);
  break_curve(figure, running, intervals, style);
  add_curve(figure, of(kWindow, intervals), Ink::kRun5, Stroke::kDotted);
}

std::string losses_of_one_run(const RunReport& run, std::size_t place, const FigureStyle& style) {
  const auto of = [&](const Phrase& name, const std::vector<PlotPoint>& points) {
    return series_of(std::string(name.in(style.language)), points, style.most_points);
  };
  Figure figure{.id = fmt::format("loss-{}", place),
                .heading = std::string(kLoss.in(style.language)),
                .plot = {.title = "", .place = PlotPlace::kWide}};
  const LossCurves& losses = run.losses;
  add_curve(figure, of(kBatch, losses.last_batch), Ink::kBlue, Stroke::kFaint);
  add_running(figure, losses.running_mean, losses.interval_mean, style);
  add_curve(figure, of(kExact, losses.training), Ink::kBlue, Stroke::kSolid);
  add_curve(figure, of(kValidation, losses.validation), Ink::kOrange, Stroke::kSolid);
  for (const PlotPoint& p : losses.validation) {
    if (p.x != losses.best || !std::isfinite(p.y)) continue;
    figure.plot.ring = PlotRing{p, fmt::format("{} {:.4f}", kBest.in(style.language), p.y)};
  }
  add_resumes(figure, run, style.language);
  return html_of(std::move(figure), style.language);
}

// One curve for each run.
struct Comparison {
  std::string id, heading, subtitle = {};
  PlotPlace place = PlotPlace::kHalf;
  bool cuts_peaks = false;
};

// The points of one run, or null; for a running mean also its intervals.
struct ComparedPoints {
  const std::vector<PlotPoint>* points = nullptr;
  const std::vector<PlotPoint>* intervals = nullptr;
};

template <class PointsOf>
std::string compared(const RunGroup& group, const Comparison& what, const FigureStyle& style,
                     PointsOf&& points_of) {
  Figure figure{.id = what.id,
                .heading = what.heading,
                .subtitle = what.subtitle,
                .plot = {.title = "", .place = what.place, .cuts_peaks = what.cuts_peaks}};
  for (std::size_t r = 0; r < group.runs.size(); ++r) {
    const auto [points, intervals] = points_of(*group.runs[r]);
    if (points == nullptr) continue;
    const std::size_t place = group.places[r];
    add_curve(figure, series_of(group.runs[r]->name, *points, style.most_points), ink_of_run(place),
              stroke_of_run(place));
    if (intervals != nullptr) break_curve(figure, *points, *intervals, style);
  }
  if (figure.plot.curves.empty()) return {};
  figure.has_legend = group.runs.size() > 1;
  return html_of(std::move(figure), style.language);
}

RunGroup all_of(std::span<const RunReport> runs) {
  RunGroup all;
  for (std::size_t r = 0; r < runs.size(); ++r) {
    all.runs.push_back(&runs[r]);
    all.places.push_back(r);
  }
  return all;
}

const std::vector<PlotPoint>* points_named(const std::vector<NamedCurve>& curves,
                                           std::string_view name) {
  for (const NamedCurve& curve : curves) {
    if (curve.name == name) return &curve.points;
  }
  return nullptr;
}

// In the order in which they first occur.
std::vector<std::string> metric_names(std::span<const RunReport> runs) {
  std::vector<std::string> names;
  for (const RunReport& run : runs) {
    for (const auto* curves : {&run.metrics, &run.running_metrics, &run.training_metrics}) {
      for (const NamedCurve& curve : *curves) {
        if (std::find(names.begin(), names.end(), curve.name) == names.end()) {
          names.push_back(curve.name);
        }
      }
    }
  }
  return names;
}

std::string metric_of_one_run(const RunReport& run, const std::string& name, std::size_t n,
                              const FigureStyle& style) {
  Figure figure{.id = fmt::format("metric-{}", n),
                .heading = metric_words(name, style.language),
                .plot = {.title = "", .place = PlotPlace::kHalf, .cuts_peaks = false}};
  const auto add = [&](const Phrase& of, const std::vector<NamedCurve>& curves, Ink ink) {
    const std::vector<PlotPoint>* points = points_named(curves, name);
    if (points == nullptr) return;
    add_curve(figure, series_of(std::string(of.in(style.language)), *points, style.most_points),
              ink, Stroke::kSolid);
  };
  if (const auto* running = points_named(run.running_metrics, name)) {
    const auto* intervals = points_named(run.interval_metrics, name);
    add_running(figure, *running, intervals == nullptr ? std::vector<PlotPoint>{} : *intervals,
                style);
  }
  add(kExact, run.training_metrics, Ink::kBlue);
  add(kValidation, run.metrics, Ink::kOrange);
  const auto* validation = points_named(run.metrics, name);
  for (const PlotPoint& p : validation == nullptr ? std::vector<PlotPoint>{} : *validation) {
    if (p.x != run.losses.best || !std::isfinite(p.y)) continue;
    figure.plot.ring = PlotRing{p, fmt::format("{} {:.4f}", kBest.in(style.language), p.y)};
  }
  return html_of(std::move(figure), style.language);
}

}  // namespace

std::vector<RunGroup> groups_by_unit(std::span<const RunReport> runs) {
  std::vector<RunGroup> groups;
  for (std::size_t r = 0; r < runs.size(); ++r) {
    auto at = std::find_if(groups.begin(), groups.end(), [&](const RunGroup& group) {
      return group.runs.front()->unit.english == runs[r].unit.english;
    });
    if (at == groups.end()) at = groups.insert(at, RunGroup{});
    at->runs.push_back(&runs[r]);
    at->places.push_back(r);
  }
  return groups;
}

std::string loss_figures(const RunGroup& group, const FigureStyle& style) {
  if (group.runs.size() == 1) {
    return losses_of_one_run(*group.runs.front(), group.places.front(), style);
  }
  const Phrase& unit = group.runs.front()->unit;
  std::string html;
  const auto add = [&](std::string_view id, const Phrase& heading,
                       std::vector<PlotPoint> LossCurves::*points,
                       std::vector<PlotPoint> LossCurves::*intervals = nullptr) {
    html +=
        compared(group,
                 {.id = fmt::format("{}-{}", id, group.places.front()),
                  .heading = std::string(heading.in(style.language)),
                  .subtitle = std::string(unit.in(style.language)),
                  .place = PlotPlace::kWide,
                  .cuts_peaks = true},
                 style, [&](const RunReport& run) {
                   return ComparedPoints{&(run.losses.*points),
                                         intervals == nullptr ? nullptr : &(run.losses.*intervals)};
                 });
  };
  add("validation", kValidationLoss, &LossCurves::validation);
  add("training", kTrainingLoss, &LossCurves::running_mean, &LossCurves::interval_mean);
  add("exact", kExactLoss, &LossCurves::training);
  return html;
}

std::string metric_figures(std::span<const RunReport> runs, const FigureStyle& style) {
  constexpr Phrase kOfTraining = {"whole training set", "整个训练集"};
  constexpr Phrase kOfBatches = {"training batches, running mean of the interval so far",
                                 "训练批次：区间内至今的运行平均"};
  constexpr Phrase kOfValidation = {"validation set", "验证集"};
  std::string html;
  const std::vector<std::string> names = metric_names(runs);
  for (std::size_t n = 0; n < names.size(); ++n) {
    if (runs.size() == 1) {
      html += metric_of_one_run(runs.front(), names[n], n, style);
      continue;
    }
    const auto add = [&](std::string_view id, const Phrase& of,
                         std::vector<NamedCurve> RunReport::*curves,
                         std::vector<NamedCurve> RunReport::*intervals = nullptr) {
      html +=
          compared(all_of(runs),
                   {.id = fmt::format("{}-{}", id, n),
                    .heading = metric_words(names[n], style.language),
                    .subtitle = std::string(of.in(style.language))},
                   style, [&](const RunReport& run) {
                     return ComparedPoints{
                         points_named(run.*curves, names[n]),
                         intervals == nullptr ? nullptr : points_named(run.*intervals, names[n])};
                   });
    };
    add("metric", kOfValidation, &RunReport::metrics);
    add("running-metric", kOfBatches, &RunReport::running_metrics, &RunReport::interval_metrics);
    add("training-metric", kOfTraining, &RunReport::training_metrics);
  }
  return html;
}

std::string course_figures(std::span<const RunReport> runs, const FigureStyle& style) {
  constexpr Phrase kRate = {"Learning rate", "学习率"};
  constexpr Phrase kNorm = {"Norm of the gradient, before clipping", "梯度范数（裁剪之前）"};
  constexpr Phrase kSpeed = {"Speed", "速度"};
  constexpr Phrase kPerSecond = {"targets per second, of each process", "每秒目标数，按进程计"};
  std::string html;
  const auto add = [&](std::string_view id, const Phrase& heading, const Phrase& subtitle,
                       std::vector<PlotPoint> RunReport::*points) {
    html += compared(all_of(runs),
                     {.id = std::string(id),
                      .heading = std::string(heading.in(style.language)),
                      .subtitle = std::string(subtitle.in(style.language)),
                      .cuts_peaks = true},
                     style, [&](const RunReport& run) { return ComparedPoints{&(run.*points)}; });
  };
  add("rate", kRate, {}, &RunReport::lr);
  add("norm", kNorm, {}, &RunReport::gradient_norm);
  add("speed", kSpeed, kPerSecond, &RunReport::speed);
  return html;
}

std::string head_figures(const RunReport& run, std::size_t n, const FigureStyle& style) {
  constexpr Phrase kEntropy = {"Entropy of the weights, nats", "权重的熵（nat）"};
  constexpr Phrase kLargest = {"Largest score", "最大分数"};
  constexpr Phrase kDistance = {"Distance from the query to what it looks at, tokens",
                                "查询到其所关注位置的平均距离（词元）"};
  constexpr Phrase kLayer = {"layer", "层"}, kLayers = {"layers", "层"}, kHead = {"head", "头"};
  constexpr Phrase kMeans = {"bold: mean of a layer; thin: each head",
                             "粗线：层平均；细线：各个头"};
  std::string html;
  const auto add = [&](std::string_view id, const Phrase& heading,
                       std::vector<std::vector<std::vector<PlotPoint>>> RunReport::*numbers) {
    const auto word = [&](const Phrase& phrase) { return std::string(phrase.in(style.language)); };
    HeadCurves heads{.title = "",
                     .y_label = "",
                     .heads = run.*numbers,
                     .layer = word(kLayer),
                     .layers = word(kLayers),
                     .head = word(kHead)};
    Figure figure{.id = fmt::format("{}-{}", id, n),
                  .heading = std::string(heading.in(style.language)),
                  .subtitle = std::string(kMeans.in(style.language)),
                  .plot = {.title = ""}};
    std::size_t count = 0;
    for (const auto& layer : heads.heads) count += layer.size();
    if (count == 0) return;
    const index most = std::clamp<index>(20 * style.most_points / static_cast<index>(count), 20,
                                         style.most_points);
    for (std::size_t l = 0; l < heads.heads.size(); ++l) {
      for (std::size_t h = 0; h < heads.heads[l].size(); ++h) {
        Series series =
            series_of(fmt::format("{} {}, {} {}", heads.layer, l + 1, heads.head, h + 1),
                      heads.heads[l][h], most);
        heads.heads[l][h] = curve_of(series, Ink::kBlue, Stroke::kThin).points;
        figure.series.push_back(std::move(series));
      }
    }
    figure.plot = heads_plot(std::move(heads));
    figure.plot.subtitle.clear();
    figure.plot.x_label.clear();
    figure.plot.place = PlotPlace::kHalf;
    html += html_of(std::move(figure), style.language);
  };
  add("entropy", kEntropy, &RunReport::entropy);
  add("score", kLargest, &RunReport::max_logit);
  add("distance", kDistance, &RunReport::distance);
  return html;
}

namespace {

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

namespace {

// A figure whose numbers stand in a table of their own.
std::string figure_with(Figure figure, std::string_view table, PageLanguage language) {
  std::string html = html_of(std::move(figure), language);
  const std::size_t end = html.rfind("</figure>");
  return html.insert(end, table);
}

Curve curve_of_run(std::string name, std::vector<PlotPoint> points, std::size_t n) {
  return {.name = std::move(name),
          .points = std::move(points),
          .ink = ink_of_run(n),
          .stroke = Stroke::kDashed};
}

std::string precision_recall_figure(const RunReport& run, PageLanguage language, std::size_t n) {
  constexpr Phrase kCurves = {"Precision over recall", "精确率—召回率曲线"};
  const ReportEvaluation& evaluation = *run.evaluation;
  if (evaluation.precision_recall.empty()) return {};
  Figure figure{.id = fmt::format("precision-{}", n),
                .heading = std::string(kCurves.in(language)),
                .subtitle = run.name,
                .plot = {.title = "",
                         .x_label = metric_words("recall", language),
                         .y_label = metric_words("precision", language),
                         .place = PlotPlace::kHalf,
                         .cuts_peaks = false}};
  std::size_t drawn = 0;
  for (const NamedCurve& curve : evaluation.precision_recall) {
    figure.plot.curves.push_back(curve_of_run(curve_words(curve, language), curve.points, drawn++));
    figure.plot.curves.back().stroke = Stroke::kDashed;
  }
  return figure_with(std::move(figure), precision_recall_table(evaluation, language), language);
}

}  // namespace

std::string search_figure(const RunReport& run, PageLanguage language, std::size_t n) {
  constexpr Phrase kSearch = {"Losses of the trials", "各次试验的损失"};
  constexpr Phrase kTrials = {"trial", "试验"},
                   kEach = {"trial on all texts", "使用全部文本的试验"};
  constexpr Phrase kBestSoFar = {"best so far", "目前最佳"};
  if (run.trials.empty()) return {};
  std::vector<PlotPoint> all, best;
  for (const ReportTrial& trial : run.trials) {
    if (!trial.on_highest || !std::isfinite(trial.loss)) continue;
    const auto x = static_cast<double>(trial.trial);
    all.push_back({x, trial.loss});
    best.push_back({x, best.empty() ? trial.loss : std::min(best.back().y, trial.loss)});
  }
  Figure figure{.id = fmt::format("search-{}", n),
                .heading = std::string(kSearch.in(language)),
                .subtitle = run.name,
                .plot = {.title = "",
                         .x_label = std::string(kTrials.in(language)),
                         .place = PlotPlace::kWide,
                         .begins_at_zero = false,
                         .cuts_peaks = false}};
  figure.plot.curves.push_back({.name = std::string(kEach.in(language)),
                                .points = std::move(all),
                                .ink = Ink::kBlue,
                                .stroke = Stroke::kDotted});
  figure.plot.curves.push_back({.name = std::string(kBestSoFar.in(language)),
                                .points = std::move(best),
                                .ink = Ink::kOrange,
                                .stroke = Stroke::kSolid});
  return figure_with(std::move(figure), trials_table(run, language), language);
}

std::string learning_figure(const RunReport& run, PageLanguage language, std::size_t n) {
  constexpr Phrase kLearning = {"Scores of parts of the texts", "使用部分文本时的得分"};
  constexpr Phrase kBand = {"means over folds; the bars are 95 % intervals",
                            "各折的平均值；竖线为 95% 区间"};
  if (run.learning.empty()) return {};
  Figure figure{.id = fmt::format("learning-{}", n),
                .heading = std::string(kLearning.in(language)),
                .subtitle = std::string(kBand.in(language)),
                .plot = {.title = "",
                         .x_label = std::string(kTextsToTrainOn.in(language)),
                         .place = PlotPlace::kWide,
                         .cuts_peaks = false}};
  for (const Curve& curve : learning_curves(run, language)) figure.plot.curves.push_back(curve);
  figure.words.push_back(html_text(learning_advice(run.learning, language)));
  return figure_with(std::move(figure), learning_table(run, language), language);
}

std::string mistake_figures(const RunReport& run, PageLanguage language, std::size_t n) {
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
  html += precision_recall_figure(run, language, n);
  return html;
}

}  // namespace fovea
