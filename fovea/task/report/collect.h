// SPDX-License-Identifier: Apache-2.0
// What a folder says of its run, for a page (report/run_report.h).
#pragma once

#include <filesystem>
#include <string>

#include "fovea/report/run_report.h"

namespace fovea {

/// Of the folder of a run, a model or a checkpoint. What it does not hold, such as the history of a
/// copied model, is empty. `name` is escaped. Computes nothing and reads no weights. Throws
/// kModelMissing if the folder is none of these, kModelDamaged for a config.json that cannot be
/// read; lines of metrics.jsonl that cannot be read are counted in the notes.
RunReport report_of_run(const std::filesystem::path& folder, const std::string& name);

}  // namespace fovea
