// SPDX-License-Identifier: Apache-2.0
// The curves of training runs as CSV.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "fovea/report/run_report.h"

namespace fovea {

/// How each such file begins.
inline constexpr std::string_view kRunCsvMark = "run,update,training_loss_batch,";

/// A row for each run and update at which anything was logged, a column for each series, below the
/// names of the columns. A cell is empty where its series has no point. Numbers have all their
/// digits; names with a comma or a quote are quoted (RFC 4180), lines end with LF.
std::string run_csv(std::span<const RunReport> runs);

}  // namespace fovea
