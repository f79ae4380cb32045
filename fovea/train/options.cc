// SPDX-License-Identifier: Apache-2.0
#include "fovea/train/options.h"

#include "fovea/base/option.h"
#include "fovea/config/field.h"
#include "fovea/train/stop_after.h"

namespace fovea {

void check_options(const TrainOptions& o) {
  check_ranges(o);
  require_option(o.min_lr >= 0 && o.min_lr <= o.lr, "min_lr", o.min_lr, "between 0 and --lr ({})",
                 o.lr);
  parse_length(o.stop_after, "--stop-after");
  to_updates(parse_length(o.eval_every, "--eval-every"), 1, "--eval-every");
  to_updates(parse_length(o.save_every, "--save-every"), 1, "--save-every");
}

}  // namespace fovea
