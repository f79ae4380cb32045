// SPDX-License-Identifier: Apache-2.0
#include "fovea/data/batcher.h"

#include <limits>

#include "fovea/base/option.h"

namespace fovea {

const DataKind& data_kind(std::string_view name) { return choose(kDataKinds, name, "data"); }

void check_options(const BatchOptions& o) {
  require_option(o.block >= 1, "block", o.block, "at least 1");
  require_option(o.batch_size >= 1, "batch_size", o.batch_size, "at least 1");
  require_option(o.accumulate >= 1, "accumulate", o.accumulate, "at least 1");
  // This bound on the tokens of an update keeps everything computed from these sizes from
  // overflowing.
  constexpr index most = std::numeric_limits<std::int32_t>::max();
  if (o.block > most / o.batch_size || o.accumulate > most / (o.block * o.batch_size)) {
    throw Error(ErrorCode::kOptionValue,
                fmt::format("--batch-size: {} x {} (--block) x {} (--accumulate) are too many "
                            "tokens for one update",
                            o.batch_size, o.block, o.accumulate),
                "choose smaller sizes: an update holds fewer than 2^31 tokens");
  }
  // The last token of a line is only a target.
  require_option(o.max_length == 0 || (o.max_length >= 2 && o.max_length <= o.block + 1),
                 "max_length", o.max_length, "0 (none), or in 2 to {} (--block and 1)",
                 o.block + 1);
}

}  // namespace fovea
