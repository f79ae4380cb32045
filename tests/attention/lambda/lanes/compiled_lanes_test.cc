// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "fovea/attention/attention.h"
#include "fovea/attention/lambda/of.h"
#include "tests/isa.h"

namespace fovea::testing {
namespace {

using bias::of;

// Steps beyond the room of a program are computed with the one number, so that a loop on them ends.
TEST(Recorded, AFunctionTooLongForTheTapeComesToItsEnd) {
  const auto part = of<float>([](auto s) {
    auto sum = s;
    for (int n = 0; n < 400; ++n) sum += s * (1.0f / (n + 1.0f));
    auto x = abs(sum) + 0.125f;
    while (x < 1) x = 2 * x;
    return x;
  });
  EXPECT_EQ(part.name(), "function (score by score: it takes too many steps)");
}

// A gradient that is not a number is passed on, on every instruction set.
TEST(Recorded, AGradientThatIsNotANumberShows) {
  const auto part = of<float>([](auto s) { return 3 * tanh(s / 3) + select(s != 2, s, 2 * s); });
  for_each_isa([&] {
    const Sequence sequence{.queries = 4, .keys = 20};
    std::vector<float> scores(80, 1.0f), dscores(80, 1.0f);
    dscores[25] = std::numeric_limits<float>::quiet_NaN();
    scores[30] = std::numeric_limits<float>::quiet_NaN();
    const ScoreTile<float> of_scores{scores.data(), 20, TileLanes::kKeys};
    const ScoreTile<float> of_gradients{dscores.data(), 20, TileLanes::kKeys};
    part.pull({sequence, 0, 0, 4, 0, 20}, {}, of_scores, of_gradients, {});
    EXPECT_TRUE(std::isnan(dscores[25]));
    EXPECT_TRUE(std::isnan(dscores[30]));
    EXPECT_FALSE(std::isnan(dscores[26]));
  });
}

}  // namespace
}  // namespace fovea::testing
