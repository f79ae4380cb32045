// SPDX-License-Identifier: Apache-2.0
#include "experiments/data_file.h"

#include <system_error>

#include "fovea/base/check.h"
#include "fovea/base/file.h"
#include "fovea/tensor/checksum.h"

namespace fovea {

std::filesystem::path require_data(const std::filesystem::path& folder, const DataFile& file) {
  const std::filesystem::path path = folder / file.path;
  const std::string hint =
      fmt::format("put the file with SHA-256 {} there; it comes from {}", file.sha256, file.origin);
  std::error_code error;
  if (!std::filesystem::exists(path, error)) {
    throw Error(ErrorCode::kMissingInput,
                fmt::format("{}: the data of the experiment is not there", path.string()), hint);
  }
  const std::string found = xxh3_128(read_file(path));
  if (found != file.xxh3) {
    throw Error(ErrorCode::kInputFormat,
                fmt::format("{}: this is another file: its XXH3 is {}, expected {}", path.string(),
                            found, file.xxh3),
                hint);
  }
  return path;
}

}  // namespace fovea
