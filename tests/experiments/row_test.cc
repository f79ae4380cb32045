// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "experiments/experiment.h"

namespace fovea {
namespace {

TEST(ReproduceRow, IsALineOfJson) {
  const ReproduceRow row{.experiment = "E4",
                         .variant = "compat",
                         .seed = 2,
                         .metric = "last_step_loss",
                         .published = 1.5,
                         .ours = 1.25,
                         .by_epoch = {2, 1.25},
                         .seconds_per_epoch = 0.5};
  EXPECT_EQ(json_of_row(row).line(),
            R"({"experiment":"E4","variant":"compat","seed":2,"metric":"last_step_loss",)"
            R"("published":1.5,"ours":1.25,"by_epoch":[2.0,1.25],"seconds_per_epoch":0.5,)"
            R"("pytorch_seconds_per_epoch":null})");
}

}  // namespace
}  // namespace fovea
