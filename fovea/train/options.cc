// SPDX-License-Identifier: Apache-2.0
#include "fovea/train/options.h"

#include "fovea/base/option.h"
#include "fovea/train/stop_after.h"

namespace fovea {

void check_options(const TrainOptions& o) {
  require_option(o.lr > 0, "lr", o.lr, "a number above 0");
  require_option(o.min_lr >= 0 && o.min_lr <= o.lr, "min_lr", o.min_lr, "between 0 and --lr ({})",
                 o.lr);
  require_option(o.beta1 >= 0 && o.beta1 < 1, "beta1", o.beta1, "at least 0 and below 1");
  require_option(o.beta2 >= 0 && o.beta2 < 1, "beta2", o.beta2, "at least 0 and below 1");
  require_option(o.weight_decay >= 0, "weight_decay", o.weight_decay, "at least 0");
  require_option(o.clip >= 0, "clip", o.clip, "at least 0 (0: no limit)");
  require_option(o.warmup >= 0, "warmup", o.warmup, "at least 0");
  require_option(o.decay_share > 0 && o.decay_share <= 1, "decay_share", o.decay_share,
                 "above 0 and at most 1");
  require_option(o.accumulate >= 1, "accumulate", o.accumulate, "at least 1");
  require_option(o.log_every >= 1, "log_every", o.log_every, "at least 1");
  require_option(o.observe_every >= 0, "observe_every", o.observe_every, "at least 0 (0: never)");
  require_option(o.patience >= 0, "patience", o.patience, "at least 0 (0: never)");
  require_option(o.keep >= 1, "keep", o.keep, "at least 1");
  parse_length(o.stop_after, "--stop-after");
  to_updates(parse_length(o.eval_every, "--eval-every"), 1, "--eval-every");
  to_updates(parse_length(o.save_every, "--save-every"), 1, "--save-every");
}

}  // namespace fovea
