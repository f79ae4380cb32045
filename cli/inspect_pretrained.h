// SPDX-License-Identifier: Apache-2.0
// fovea inspect of models from elsewhere: a folder of Hugging Face, or a GGUF file.
#pragma once

#include <filesystem>

#include "cli/command_line.h"

namespace fovea::cli {

/// Shows metadata and tensors, or reads and checks all values. Returns the exit status.
int inspect_pretrained(const std::filesystem::path& path, const Arguments& arguments);

}  // namespace fovea::cli
