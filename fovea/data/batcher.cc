// SPDX-License-Identifier: Apache-2.0
#include "fovea/data/batcher.h"

#include <limits>
#include <string>

#include "fovea/base/check.h"
#include "fovea/base/printable.h"

namespace fovea {

namespace {

void require_positive(std::string_view what, index value) {
  if (value < 1) fail(ErrorCode::kOptionValue, "the {} must be at least 1; it is {}", what, value);
}

}  // namespace

const DataKind& data_kind(std::string_view name) {
  std::string known;
  for (const DataKind& kind : kDataKinds) {
    if (kind.name == name) return kind;
    known += known.empty() ? "" : ", ";
    known += kind.name;
  }
  fail(ErrorCode::kOptionValue, "data {} is not one of: {}", printable(name), known);
}

void check_options(const BatchOptions& options) {
  require_positive("block", options.block);
  require_positive("batch size", options.batch_size);
  require_positive("number of micro steps", options.accumulate);
  // One bound for the tokens of an update: whatever is computed from these sizes can be counted.
  constexpr index most = std::numeric_limits<std::int32_t>::max();
  if (options.block > most / options.batch_size ||
      options.accumulate > most / (options.block * options.batch_size)) {
    throw Error(
        ErrorCode::kOptionValue,
        fmt::format("a block of {} x a batch size of {} x {} micro steps are too many tokens "
                    "for one update",
                    options.block, options.batch_size, options.accumulate),
        "choose smaller sizes: an update holds fewer than 2^31 tokens");
  }
}

}  // namespace fovea
