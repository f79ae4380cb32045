// SPDX-License-Identifier: Apache-2.0
// fovea inspect: what a model folder holds, and whether it is whole.
#include <fmt/core.h>

#include <algorithm>
#include <filesystem>
#include <vector>

#include "cli/commands.h"
#include "cli/output.h"
#include "fovea/base/check.h"
#include "fovea/config/field.h"
#include "fovea/task/language_model.h"
#include "fovea/train/model_folder.h"

namespace fovea::cli {

namespace {

namespace fs = std::filesystem;

std::vector<fs::path> checkpoints_in(const fs::path& folder) {
  std::vector<fs::path> found;
  const fs::path checkpoints = folder / "checkpoints";
  if (!fs::is_directory(checkpoints)) return found;
  for (const fs::directory_entry& entry : fs::directory_iterator(checkpoints)) {
    const std::string name = entry.path().filename().string();
    if (name.rfind("step-", 0) == 0 && name.find(".tmp") == std::string::npos) {
      found.push_back(entry.path());
    }
  }
  std::sort(found.begin(), found.end());
  return found;
}

// Prints each file's state; returns how many are damaged.
int verify(const fs::path& folder) {
  int damaged = 0;
  for (const FileCheck& check : verify_model_folder(folder)) {
    print(fmt::format("{}  {}\n", check.problem.empty() ? "whole  " : "DAMAGED",
                      (folder / check.name).string()));
    if (!check.problem.empty()) {
      ++damaged;
      warn(check.problem);
    }
  }
  return damaged;
}

void describe(const fs::path& folder) {
  LanguageModelSettings settings = load_settings(folder);
  const Safetensors weights = read_model_weights(folder);
  index parameters = 0;
  for (const NamedTensor& named : weights.tensors) parameters += named.tensor.size();
  print(fmt::format("language model, {} parameters in {} tensors", parameters,
                    weights.tensors.size()));
  const auto step = weights.metadata.find("step");
  print(step == weights.metadata.end() ? "\n" : fmt::format(", of update {}\n", step->second));
  for (const Field& field : fields_of(settings)) {
    print(fmt::format("  {:<24} {}\n", field.name, value_text(field)));
  }
  for (const NamedTensor& named : weights.tensors) {
    print(fmt::format("  {:<48} {}\n", named.name, named.tensor.describe()));
  }
  for (const fs::path& checkpoint : checkpoints_in(folder)) {
    print(fmt::format("checkpoint {}\n", checkpoint.string()));
  }
}

}  // namespace

CommandSpec inspect_spec() {
  return {.name = "inspect",
          .summary = "Shows what a model folder holds, and whether it is whole.",
          .positionals = {{"DIR", "folder of the model, or a checkpoint"}},
          .options = {{"verify", OptionKind::kFlag, "", "check every byte, checkpoints included",
                       "Options", ""}},
          .epilog = R"(Example:
  fovea inspect model --verify)"};
}

int inspect(const Arguments& arguments) {
  const fs::path folder = arguments.text("DIR");
  if (!arguments.on("verify")) {
    describe(folder);
    return 0;
  }
  int damaged = verify(folder);
  for (const fs::path& checkpoint : checkpoints_in(folder)) damaged += verify(checkpoint);
  if (damaged == 0) return 0;
  throw Error(ErrorCode::kModelDamaged,
              fmt::format("{}: {} files are damaged", folder.string(), damaged),
              "restore them from a copy; --resume passes over damaged checkpoints");
}

}  // namespace fovea::cli
