// SPDX-License-Identifier: Apache-2.0
// fovea inspect: what a model folder holds, and whether it is whole.
#include <fmt/core.h>

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
  const fs::path checkpoints = checkpoints_of(folder);
  for (const index step : checkpoint_steps(checkpoints)) {
    found.push_back(checkpoint_path(checkpoints, step));
  }
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

// Those of the newest checkpoint that can be read.
LanguageModelSettings newest_settings(const fs::path& folder, std::vector<fs::path> checkpoints) {
  for (; !checkpoints.empty(); checkpoints.pop_back()) {
    try {
      return load_settings(checkpoints.back());
    } catch (const Error& error) {
      if (error.code() == ErrorCode::kOutOfMemory) throw;
      warn(error.what());
    }
  }
  return load_settings(folder);
}

// The settings that a run began with, and beside them those with which it went on.
void describe_settings(const fs::path& folder, const std::vector<fs::path>& checkpoints) {
  LanguageModelSettings began = load_settings(folder);
  LanguageModelSettings now = newest_settings(folder, checkpoints);
  const std::vector<Field> before = fields_of(began), after = fields_of(now);
  for (std::size_t i = 0; i < before.size(); ++i) {
    const std::string was = value_text(before[i]), is = value_text(after[i]);
    print(fmt::format("  {:<24} {}{}\n", before[i].name, was,
                      was == is ? "" : fmt::format(", since it was resumed {}", is)));
  }
}

void describe(const fs::path& folder) {
  const std::vector<fs::path> checkpoints = checkpoints_in(folder);
  const Safetensors weights = read_model_weights(folder);
  index parameters = 0;
  for (const NamedTensor& named : weights.tensors) parameters += named.tensor.size();
  print(fmt::format("language model, {} parameters in {} tensors", parameters,
                    weights.tensors.size()));
  const auto step = weights.metadata.find("step");
  print(step == weights.metadata.end() ? "\n" : fmt::format(", of update {}\n", step->second));
  describe_settings(folder, checkpoints);
  for (const NamedTensor& named : weights.tensors) {
    print(fmt::format("  {:<48} {}\n", named.name, named.tensor.describe()));
  }
  for (const fs::path& checkpoint : checkpoints) {
    print(fmt::format("checkpoint {}\n", checkpoint.string()));
  }
}

}  // namespace

CommandSpec inspect_spec() {
  return {.name = "inspect",
          .summary = "Shows what a model folder holds, and checks it for damage.",
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
              fmt::format("{}: damaged files: {}", folder.string(), damaged),
              "restore them from a copy; --resume passes over damaged checkpoints");
}

}  // namespace fovea::cli
