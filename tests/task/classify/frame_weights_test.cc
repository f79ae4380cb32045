// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <numeric>

#include "fovea/task/classify/classifier.h"
#include "fovea/task/explain.h"
#include "tests/support/throws.h"
#include "tests/task/classify/untrained_frames.h"

namespace fovea {
namespace {

double sum_of(const NamedTensor& array, index begin, index end) {
  const float* const values = array.tensor.data<float>();
  return std::accumulate(values + begin, values + end, 0.0);
}

TEST(FrameWeights, SumToOneWhereASampleIs) {
  const LoadedClassifier model =
      untrained_frames("attention,attention:joints", PoolingKind::kAttention);
  const auto arrays = frame_weights(Context(1), model, two_samples(), 5);
  ASSERT_EQ(arrays.size(), 5U);
  EXPECT_EQ(arrays[0].name, "attention_0");
  EXPECT_EQ(arrays[2].name, "pooling");
  EXPECT_EQ(arrays[0].tensor.shape(), Shape({2, 5, 3}));
  EXPECT_NEAR(sum_of(arrays[0], 0, 15), 3, 1e-5);  // each joint over time
  EXPECT_NEAR(sum_of(arrays[1], 0, 15), 2, 1e-5);  // each time step over its joints
  EXPECT_NEAR(sum_of(arrays[1], 0, 3), 1, 1e-5);
  EXPECT_NEAR(sum_of(arrays[2], 15, 30), 1, 1e-5);
  EXPECT_EQ(sum_of(arrays[2], 6, 15), 0);   // beyond the first sample
  EXPECT_EQ(sum_of(arrays[2], 15, 18), 0);  // what is cut in front
  EXPECT_EQ(arrays[3].name, "time");
  EXPECT_NEAR(sum_of(arrays[3], 5, 10), 1, 1e-5);
  EXPECT_EQ(arrays[4].name, "joints");
  EXPECT_NEAR(sum_of(arrays[4], 3, 6), 1, 1e-5);
}

// An attention over joints says nothing of time, and the other way around, whichever comes last.
TEST(FrameWeights, SharesAreThoseOfTheirOwnAxis) {
  for (const std::string encoder : {"attention,attention:joints", "attention:joints,attention"}) {
    const auto arrays =
        frame_weights(Context(1), untrained_frames(encoder, PoolingKind::kMean), two_samples(), 5);
    ASSERT_EQ(arrays.size(), 4U);
    const std::size_t over_time = encoder.ends_with("joints") ? 0 : 1;
    EXPECT_EQ(arrays[2].name, "time");
    EXPECT_EQ(arrays[3].name, "joints");
    for (index t = 0; t < 2; ++t) {
      EXPECT_NEAR(sum_of(arrays[2], t, t + 1), sum_of(arrays[over_time], 3 * t, 3 * t + 3) / 3,
                  1e-6);
    }
    for (index j = 0; j < 3; ++j) {
      const NamedTensor& of = arrays[1 - over_time];
      const double all = sum_of(of, j, j + 1) + sum_of(of, 3 + j, 4 + j);
      EXPECT_NEAR(sum_of(arrays[3], j, j + 1), all / 2, 1e-6);
    }
  }
  const auto only = [](const std::string& encoder) {
    return frame_weights(Context(1), untrained_frames(encoder, PoolingKind::kMean), two_samples(),
                         5)
        .back()
        .name;
  };
  EXPECT_EQ(only("attention"), "time");
  EXPECT_EQ(only("attention:joints"), "joints");
}

TEST(FrameWeights, NeedAttention) {
  EXPECT_THROWS(
      frame_weights(Context(1), untrained_frames("conv3", PoolingKind::kMean), two_samples(), 5),
      kUsage, "no attention");
}

}  // namespace
}  // namespace fovea
