// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include "experiments/experiment.h"

namespace fovea {
namespace {

using testing::DoubleEq;
using testing::ElementsAre;
using testing::HasSubstr;

TEST(SeedCurves, AreTheMeansOverTheSeeds) {
  SeedCurves curves("accuracy");
  curves.publish("E1", {.5, .25});
  curves.add("E1", "plain", {.5, .75});
  curves.add("E2", "other", {1});
  curves.add("E1", "fixed", {.125, .25});
  curves.add("E1", "plain", {.25, .75});
  const Plot plot = curves.plot("E1");
  EXPECT_EQ(plot.title, "E1");
  EXPECT_THAT(plot.subtitle, HasSubstr("mean of 1 to 2 seeds"));
  ASSERT_EQ(plot.curves.size(), 3u);
  EXPECT_EQ(plot.curves[0].name, "plain (2)");
  EXPECT_EQ(plot.curves[0].points[0].x, 1);
  EXPECT_EQ(plot.curves[0].points[0].y, .375);
  EXPECT_THAT(plot.curves[0].spread, ElementsAre(DoubleEq(.125 * 1.4142135623730951), 0));
  EXPECT_EQ(plot.curves[1].name, "fixed (1)");
  EXPECT_TRUE(plot.curves[1].spread.empty());
  EXPECT_EQ(plot.curves[2].name, "published");
  EXPECT_EQ(plot.curves[2].points[1].y, .25);
  EXPECT_EQ(curves.plot("E2").subtitle, "one seed");
  EXPECT_EQ(curves.plot("E2").curves.size(), 1u);
  EXPECT_TRUE(curves.plot("E3").curves.empty());
}

}  // namespace
}  // namespace fovea
