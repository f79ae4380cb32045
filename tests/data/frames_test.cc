// SPDX-License-Identifier: Apache-2.0
#include "fovea/data/frames.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/throws.h"

namespace fovea {
namespace {

using testing::ElementsAre;

// Two samples of at most 2 time steps of 2 features; the first has 1.
FrameFile file_of(std::vector<double> values) {
  return {.name = "a.npz",
          .x = Tensor::of<double>({2, 2, 2}, values),
          .joints = 0,
          .features = 2,
          .lengths = {1, 2},
          .labels = {},
          .numbers = {}};
}

TEST(Frames, AreNormalisedByWhatIsTrained) {
  const std::vector<FrameFile> files{file_of({1, 5, 99, 99, 3, 5, 5, 5}),
                                     file_of({80, 80, 80, 80, 90, 90, 90, 90})};
  const FrameScale scale = scale_of(files, {false, false, true, true});
  EXPECT_THAT(scale.mean, ElementsAre(3, 5));
  EXPECT_DOUBLE_EQ(scale.deviation[0], std::sqrt(8.0 / 3));
  EXPECT_EQ(scale.deviation[1], 1);  // it never changes
  FrameSet set;
  append(set, files[0], scale);
  EXPECT_THAT(set.starts, ElementsAre(0, 1, 3));
  EXPECT_FLOAT_EQ(set.rows()[0][0], static_cast<float>(-2 / std::sqrt(8.0 / 3)));
  EXPECT_EQ(set.rows()[1][0], 0);
  EXPECT_EQ(set.rows()[2][1], 0);
  append(set, files[1], scale);
  EXPECT_EQ(set.samples(), 4);
}

TEST(Frames, NamesWhatIsTooFarFromTheTraining) {
  FrameSet set;
  EXPECT_THROWS(append(set, file_of({1, 5, 99, 99, 3, 3e38, 5, 5}), {{0, 0}, {1, 1e-3}}),
                kInputFormat,
                "a.npz: sample 1: x: feature 1: expected numbers like those of the training");
}

TEST(Frames, HaveTheShapeOfTheModel) {
  const FrameFile file = file_of(std::vector<double>(8));
  require_shape(file, 0, 2, "the model");
  EXPECT_THROWS(require_shape(file, 3, 2, "the model"), kInputFormat,
                "a.npz: x: expected [sample, time, 3, 2], as the model has, got [sample, time, 2]");
}

}  // namespace
}  // namespace fovea
