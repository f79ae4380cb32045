// SPDX-License-Identifier: Apache-2.0
// The figures of the page of training runs, as HTML: a plot, its legend, what it says, its numbers;
// and those of an evaluation's mistakes.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "fovea/report/curves.h"
#include "fovea/report/run_report.h"

namespace fovea {

/// The style that all figures of a page share.
struct FigureStyle {
  PageLanguage language = PageLanguage::kEnglish;
  index most_points = 1000;  ///< of a curve, before it is thinned
};

/// Runs whose losses have the same unit, and the place of each among all runs, which is its colour.
struct RunGroup {
  std::vector<const RunReport*> runs;
  std::vector<std::size_t> places;
};
std::vector<RunGroup> groups_by_unit(std::span<const RunReport> runs);

/// One run: all its losses in one plot. Several: a plot for each kind of loss.
std::string loss_figures(const RunGroup& group, const FigureStyle& style);
/// A plot for each metric.
std::string metric_figures(std::span<const RunReport> runs, const FigureStyle& style);
/// Learning rate, norm of the gradient, speed.
std::string course_figures(std::span<const RunReport> runs, const FigureStyle& style);
/// Entropy, largest score and distance of each head of a run, the n-th one of the page.
std::string head_figures(const RunReport& run, std::size_t n, const FigureStyle& style);

/// Confusion, calibration and precision over recall of a run's evaluation, the n-th of the page.
std::string mistake_figures(const RunReport& run, PageLanguage language, std::size_t n = 0);

/// The losses of the trials of a search, and the best so far.
std::string search_figure(const RunReport& run, PageLanguage language, std::size_t n);

/// The words for the x axis of learning curves: how good models of a part of the texts are.
inline constexpr Phrase kTextsToTrainOn = {"texts to train on", "训练文本数"};
/// The curves of all numbers but the loss, each with bars as long as its intervals.
std::vector<Curve> learning_curves(const RunReport& run, PageLanguage language);
/// One sentence: whether more texts are worth it. The gain of the last doubling of the texts, and
/// of the one before it, say what the next would bring: as much less again. A gain that is no
/// larger than the interval of the last point is told as chance. Points are by ascending rows, each
/// twice as many as before.
std::string learning_advice(std::span<const ReportLearning> points, PageLanguage language);
/// The curves, the sentence and their numbers.
std::string learning_figure(const RunReport& run, PageLanguage language, std::size_t n);

}  // namespace fovea
