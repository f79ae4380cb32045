// SPDX-License-Identifier: Apache-2.0
#include "fovea/train/options.h"

#include <cmath>

#include "fovea/base/check.h"
#include "fovea/train/stop_after.h"

namespace fovea {

namespace {

void require(bool ok, std::string_view option, const std::string& value, std::string_view rule) {
  if (ok) return;
  throw Error(ErrorCode::kOptionValue, fmt::format("{}: {} is out of range", option, value),
              fmt::format("{} must be {}", option, rule));
}

void require_number(bool ok, std::string_view option, double value, std::string_view rule) {
  require(ok && std::isfinite(value), option, fmt::format("{:g}", value), rule);
}

void require_count(index value, index least, std::string_view option) {
  require(value >= least, option, fmt::format("{}", value), fmt::format("at least {}", least));
}

}  // namespace

void check_options(const TrainOptions& o) {
  require_number(o.lr > 0, "--lr", o.lr, "a number above 0");
  require_number(o.min_lr >= 0 && o.min_lr <= o.lr, "--min-lr", o.min_lr,
                 fmt::format("between 0 and --lr ({:g})", o.lr));
  require_number(o.beta1 >= 0 && o.beta1 < 1, "--beta1", o.beta1, "at least 0 and below 1");
  require_number(o.beta2 >= 0 && o.beta2 < 1, "--beta2", o.beta2, "at least 0 and below 1");
  require_number(o.weight_decay >= 0, "--weight-decay", o.weight_decay, "at least 0");
  require_number(o.clip >= 0, "--clip", o.clip, "at least 0 (0: no limit)");
  require_count(o.warmup, 0, "--warmup");
  require_count(o.accumulate, 1, "--accumulate");
  require_count(o.log_every, 1, "--log-every");
  require_count(o.keep, 1, "--keep");
  parse_length(o.stop_after, "--stop-after");
  to_updates(parse_length(o.eval_every, "--eval-every"), 1, "--eval-every");
  to_updates(parse_length(o.save_every, "--save-every"), 1, "--save-every");
}

}  // namespace fovea
