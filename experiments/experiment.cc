// SPDX-License-Identifier: Apache-2.0
#include "experiments/experiment.h"

#include <system_error>

#include "fovea/base/check.h"
#include "fovea/base/file.h"
#include "fovea/tensor/checksum.h"

namespace fovea {

namespace {

Json number_or_null(const std::optional<double>& value) { return value ? Json(*value) : Json(); }

}  // namespace

Json json_of_row(const ReproduceRow& row) {
  Json::Array by_epoch;
  for (const double value : row.by_epoch) by_epoch.emplace_back(value);
  return Json::Object{{"experiment", row.experiment},
                      {"variant", row.variant},
                      {"seed", row.seed},
                      {"metric", row.metric},
                      {"published", number_or_null(row.published)},
                      {"ours", number_or_null(row.ours)},
                      {"by_epoch", by_epoch},
                      {"seconds_per_epoch", number_or_null(row.seconds_per_epoch)},
                      {"pytorch_seconds_per_epoch", number_or_null(row.pytorch_seconds_per_epoch)}};
}

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
