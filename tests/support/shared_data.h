// SPDX-License-Identifier: Apache-2.0
// Texts that are not ours to keep: they lie beside the repository or nowhere.
#pragma once

#include <filesystem>
#include <string_view>

namespace fovea {

/// The folder shared/data/`name`, beside the repository or above it; empty if there is none.
inline std::filesystem::path shared_data(std::string_view name) {
  std::filesystem::path folder = std::filesystem::current_path();
  for (; folder != folder.root_path(); folder = folder.parent_path()) {
    const std::filesystem::path data = folder / "shared" / "data" / name;
    if (std::filesystem::exists(data)) return data;
  }
  return {};
}

}  // namespace fovea
