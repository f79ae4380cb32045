// SPDX-License-Identifier: Apache-2.0
// fovea inspect of a GGUF file.
#pragma once

#include <filesystem>

#include "cli/command_line.h"

namespace fovea::cli {

/// Shows metadata and tensors, or reads and checks all values. Returns the exit status.
int inspect_gguf(const std::filesystem::path& path, const Arguments& arguments);

}  // namespace fovea::cli
