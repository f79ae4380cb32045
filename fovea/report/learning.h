// SPDX-License-Identifier: Apache-2.0
// Learning curves: how good models of a part of the texts are, and whether more texts are worth it.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "fovea/report/run_report.h"
#include "fovea/report/terminal_plot.h"

namespace fovea {

/// The curves of all numbers but the loss, each with bars as long as its intervals.
std::vector<Curve> learning_curves(const RunReport& run, PageLanguage language);

/// One sentence. The gain of the last doubling of the texts, and of the one before it, say what the
/// next would bring: as much less again. A gain that is no larger than the interval of the last
/// point is told as chance. Points are by ascending rows, each twice as many as before.
std::string learning_advice(std::span<const ReportLearning> points, PageLanguage language);

/// The same in a terminal: the first curve as a picture, the numbers, the sentence.
std::string terminal_learning(const RunReport& run, const TerminalPlotOptions& options);

}  // namespace fovea
