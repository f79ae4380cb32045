// SPDX-License-Identifier: Apache-2.0
// Collects the data of a run from its folder, for a page (report/run_report.h).
#pragma once

#include <filesystem>
#include <string>

#include "fovea/report/run_report.h"

namespace fovea {

/// The report on the folder of a run, a model or a checkpoint. Parts that the folder does not hold,
/// such as the history of a copied model, are empty. `name` is escaped. Computes nothing and reads
/// no weights. Throws kModelMissing if the folder is none of these, kModelDamaged for a config.json
/// that cannot be read; lines of metrics.jsonl that cannot be read are counted in the notes.
RunReport report_of_run(const std::filesystem::path& folder, const std::string& name);

}  // namespace fovea
