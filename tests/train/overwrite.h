// SPDX-License-Identifier: Apache-2.0
// Writes a file as somebody else may have left it.
#pragma once

#include <filesystem>
#include <fstream>
#include <string>

namespace fovea {

/// Without waiting for the disk.
inline void overwrite(const std::filesystem::path& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary) << bytes;
}

}  // namespace fovea
