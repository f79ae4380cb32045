// SPDX-License-Identifier: Apache-2.0
// Draws the losses of a training run with characters.
#pragma once

#include <string>

#include "fovea/report/run_report.h"

namespace fovea {

struct TerminalPlotOptions {
  index columns = 80;                              ///< of the terminal; at least 40 are used
  bool unicode = false;                            ///< braille dots and lines, not only ASCII
  PageLanguage language = PageLanguage::kEnglish;  ///< Chinese only with `unicode`
};

/// The running mean of the training loss as a line of dots, the validation losses as o, that of the
/// best weights as @, with axes, their units and a legend, and the loss of the last batch and the
/// mean of the last 16. It needs no colour. It is cut off at the top as in draw_svg(), and the
/// legend says so. Names are printed as they are.
std::string terminal_losses(const RunReport& run, const TerminalPlotOptions& options);

}  // namespace fovea
