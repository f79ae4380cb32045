// SPDX-License-Identifier: Apache-2.0
#include "experiments/row.h"

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

}  // namespace fovea
