// SPDX-License-Identifier: Apache-2.0
// The data of experiments, which are not part of fovea.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

namespace fovea {

struct DataFile {
  std::string_view path;    ///< below the folder of data
  std::string_view xxh3;    ///< of its bytes, as xxh3_128() gives it
  std::string_view sha256;  ///< for people, who may have sha256sum; it is not computed here
  std::string_view origin;  ///< where it comes from
};

/// The path of the file. Throws kMissingInput, which says which file is needed, its checksum and
/// where it goes, and kInputFormat if another file is there.
std::filesystem::path require_data(const std::filesystem::path& folder, const DataFile& file);

}  // namespace fovea
