// SPDX-License-Identifier: Apache-2.0
#include "cli/task_commands.h"

#include <algorithm>
#include <array>

namespace fovea::cli {

std::span<const TaskCommands> task_commands() {
  static const std::array<TaskCommands, 4> rows = {kLanguageModelCommands, kClassifierCommands,
                                                   kTaggerCommands, kTranslatorCommands};
  return rows;
}

const TaskCommands& commands_of_model(const std::filesystem::path& folder) {
  const ModelKind kind = kind_of_model(folder);
  const auto rows = task_commands();
  return *std::find_if(rows.begin(), rows.end(),
                       [&](const TaskCommands& row) { return row.kind == kind; });
}

}  // namespace fovea::cli
