// SPDX-License-Identifier: Apache-2.0
// Collects what an experiment measures.
#pragma once

#include <vector>

#include "experiments/experiment.h"

namespace fovea {

struct Measured {
  std::vector<ReproduceRow> rows;
  int asked = 0;  ///< how often the experiment asked whether to stop
  int stop_after = 1 << 30;

  ReproduceObserver observer() {
    return {.measured = [this](const ReproduceRow& row) { rows.push_back(row); },
            .begins = {},
            .stop = [this] { return ++asked > stop_after; }};
  }
};

}  // namespace fovea
