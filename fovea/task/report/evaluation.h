// SPDX-License-Identifier: Apache-2.0
// The output of `fovea eval --json` for a model, and how it is read again.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "fovea/config/json.h"
#include "fovea/report/run_report.h"
#include "fovea/task/task_table.h"

namespace fovea {

/// The evaluation of a model, as a file holds it.
struct EvaluationFile {
  ModelKind kind = ModelKind::kLanguageModel;
  ReportEvaluation evaluation = {};
  std::string model = {};  ///< its config_checksum(); "" in files of before, and of translations
};

/// The object of `fovea eval --json`: the scores of a model, and which it is (config_checksum()).
Json evaluation_of(const Json& scores, std::string_view model);
/// The object as a line, for the model in a folder; with adapters (--adapter) it is another model,
/// and says which they are.
std::string evaluation_line(const Json& scores, const std::filesystem::path& folder,
                            const std::vector<std::string>& adapters = {});

/// Whether it may be one of this run, or of a checkpoint of it: such a file says so, or does not
/// say of which model it is.
bool may_be_of(const EvaluationFile& evaluation, const std::filesystem::path& folder);

/// Numbers, confusion matrix and calibration of an evaluation, those that the file has. Throws what
/// read_file throws, and kInputFormat, which names the file, if it is no such object.
EvaluationFile read_evaluation(const std::filesystem::path& file);

}  // namespace fovea
