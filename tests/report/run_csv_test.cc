// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cmath>

#include "fovea/report/run_tables.h"

namespace fovea {
namespace {

TEST(RunCsv, HasARowForEachUpdateAndEverySeries) {
  RunReport a{.name = "a,\"b\""};
  a.losses.last_batch = {{5, 0.1}, {10, NAN}};
  a.losses.last16_mean = {{5, 1.25}};
  a.losses.running_mean = {{5, 1.5}};
  a.losses.validation = {{10, 0.25}};
  a.lr = {{5, 1e-7}};
  a.metrics = {{"accuracy", {{10, 1.0 / 3}}}};
  RunReport b{.name = "b"};
  b.losses.last_batch = {{5, 2}};
  b.metrics = {{"bleu", {{20, 31.5}}}};
  const RunReport runs[] = {a, b};
  const std::string csv = run_csv(runs);
  EXPECT_EQ(csv,
            "run,update,training_loss_batch,training_loss_last16_mean,training_loss_running_mean,"
            "training_loss_interval_mean,training_loss,validation_loss,lr,gradient_norm,targets_"
            "per_second,"
            "validation_accuracy,validation_bleu\n"
            "\"a,\"\"b\"\"\",5,0.1,1.25,1.5,,,,1e-07,,,,\n"
            "\"a,\"\"b\"\"\",10,nan,,,,,0.25,,,,0.3333333333333333,\n"
            "b,5,2,,,,,,,,,,\n"
            "b,20,,,,,,,,,,,31.5\n");
  EXPECT_TRUE(csv.starts_with(kRunCsvMark));
}

}  // namespace
}  // namespace fovea
