// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fovea/model/classifier.h"
#include "fovea/model/text_batch.h"
#include "fovea/reference/gradcheck.h"
#include "tests/support/throws.h"
#include "tests/support/vectors.h"

namespace fovea {
namespace {

using testing::ElementsAre;

constexpr index kSteps = 12, kJoints = 3, kFeatures = 2;

// Samples cut from a set of 12 time steps: 2, 3 and 1 of them.
struct Samples {
  std::vector<float> values = std::vector<float>(kSteps * kJoints * kFeatures);
  std::vector<std::int32_t> ids{4, 5, 0, 1, 2, 9}, offsets{0, 2, 5, 6}, labels{0, 1, 2};
  std::vector<std::uint64_t> names{7, 3, 5};

  Samples() {
    Random random(3, RandomUse::kTest);
    for (float& value : values) value = static_cast<float>(random.uniform(-1, 1));
  }
  TextRows rows() const {
    return {.ids = {ids.data(), static_cast<index>(ids.size())},
            .offsets = {offsets.data(), static_cast<index>(offsets.size())},
            .samples = {names.data(), static_cast<index>(names.size())},
            .frames = {values.data(), kSteps, kJoints * kFeatures}};
  }
  // Sample s alone.
  Samples only(std::size_t s) const {
    Samples one = *this;
    one.ids.assign(ids.begin() + offsets[s], ids.begin() + offsets[s + 1]);
    one.offsets = {0, static_cast<std::int32_t>(one.ids.size())};
    one.names = {names[s]};
    one.labels = {labels[s]};
    return one;
  }
};

constexpr FrameShape kShape{.block = 4, .joints = kJoints, .features = kFeatures};

TEST(FrameBatch, LaysJointsOutOneAfterAnother) {
  Tape tape{Context(1)};
  const Samples samples;
  const FrameLayout layout = lay_out_frames(tape, samples.rows(), kShape);
  EXPECT_THAT(to_vector(layout.rows.offsets), ElementsAre(0, 2, 4, 6, 9, 12, 15, 16, 17, 18));
  EXPECT_THAT(to_vector(layout.samples.offsets), ElementsAre(0, 6, 15, 18));
  EXPECT_EQ(layout.joints[3], 1);
  EXPECT_EQ(layout.rows.positions[3], 1);
  const RowsAcross& across = *layout.rows.across;
  EXPECT_EQ(across.rows.count(), 6);
  // The second time step of the second sample: rows of the joints 0, 1 and 2 at time 1.
  EXPECT_EQ(across.order[9], 7);
  EXPECT_EQ(across.order[10], 10);
  EXPECT_EQ(across.order[11], 13);
  for (index n = 0; n < 18; ++n) EXPECT_EQ(across.back[across.order[n]], n);
}

TEST(FrameBatch, ReadsTheNumbersOfEachRow) {
  Tape tape{Context(1)};
  const Samples samples;
  const Variable x = frame_values(tape, samples.rows(), kShape, DType::kFloat32);
  // Row 10: sample 1, joint 1, time 1, which is time step 1 of the set.
  EXPECT_EQ(x.value<float>()[10][1], samples.values[(1 * kJoints + 1) * kFeatures + 1]);
}

TEST(FrameBatch, RefusesWhatDoesNotFit) {
  Tape tape{Context(1)};
  Samples samples;
  FrameShape shape = kShape;
  shape.block = 2;
  EXPECT_THROWS(lay_out_frames(tape, samples.rows(), shape), kShape,
                "sample 1 has 3 time steps; the model sees at most 2");
  shape.features = 3;
  EXPECT_THROWS(frame_values(tape, samples.rows(), shape, DType::kFloat32), kShape,
                "must have 9 columns; they have 6");
  samples.ids[0] = kSteps;
  EXPECT_THROWS(frame_values(tape, samples.rows(), kShape, DType::kFloat32), kShape,
                "no frame 12 of 12");
}

ClassifierConfig frame_config(const char* encoder) {
  ClassifierConfig c;
  c.encoder = encoder;
  c.classes = 3;
  c.heads = 2;
  c.width = 4;
  c.ff = 5;
  c.block = 4;
  c.features = kFeatures;
  c.joints = kJoints;
  c.init = InitScheme::kKeras;
  c.position = PositionKind::kLearned;
  c.pooling = PoolingKind::kAttention;
  return c;
}

constexpr const char* kEncoders[] = {"", "attention,attention:joints", "conv3,transformer:joints",
                                     "bilstm:4+attention:joints:plain,ff"};

TEST(FrameClassifier, GradientsAreThoseOfTheForward) {
  const Samples samples;
  for (const char* encoder : kEncoders) {
    const Classifier model(frame_config(encoder), 1, DType::kFloat64);
    const auto report = check_gradients(Context(2), model.parameters(), [&](Tape& tape) {
      return model.loss(tape, {.texts = samples.rows(), .labels = {samples.labels.data(), 3}});
    });
    EXPECT_LE(report.error, 1e-7) << encoder << ": " << report.where;
  }
}

TEST(FrameClassifier, ASampleHasTheSameBitsAloneAndForAnyThreads) {
  const Samples samples;
  for (const char* encoder : kEncoders) {
    const Classifier model(frame_config(encoder), 1);
    const auto logits = [&](const Samples& of, int threads) {
      Tape tape(Context(threads), TapeMode::kInference);
      return to_vector(model.logits(tape, of.rows()).value<float>());
    };
    const std::vector<float> together = logits(samples, 1);
    EXPECT_EQ(logits(samples, 3), together) << encoder;
    for (std::size_t s = 0; s < 3; ++s) {
      const auto begin = together.begin() + static_cast<std::ptrdiff_t>(3 * s);
      EXPECT_EQ(logits(samples.only(s), 2), std::vector<float>(begin, begin + 3)) << encoder;
    }
  }
}

// A layer over time cannot carry what one joint does to another, one over joints does.
TEST(FrameClassifier, OnlyLayersOverJointsConnectThem) {
  const auto weights = [](const Samples& samples, const char* encoder) {
    const Classifier model(frame_config(encoder), 1);
    Tape tape(Context(1), TapeMode::kInference);
    std::vector<HeadStatistics> seen(static_cast<std::size_t>(model.attentions()));
    for (HeadStatistics& one : seen) one.sees_keys = true;
    model.logits(tape, samples.rows(), {.attention = seen});
    const std::vector<double>& received = seen[0].received;  // [2, rows]
    std::vector<double> sums(received.begin(), received.begin() + received.size() / 2);
    for (std::size_t n = 0; n < sums.size(); ++n) sums[n] += received[n + sums.size()];
    return sums;
  };
  const Samples samples;
  Samples changed = samples;
  changed.values[(4 * kJoints + 2) * kFeatures] += 1;  // sample 0, time 0, joint 2: row 4
  const auto over_time = weights(samples, "attention"), now = weights(changed, "attention");
  EXPECT_EQ(over_time[0], now[0]);
  EXPECT_NE(over_time[4], now[4]);
  const auto over_joints = weights(samples, "attention:joints");
  const auto then = weights(changed, "attention:joints");
  EXPECT_NE(over_joints[0], then[0]);
  EXPECT_EQ(over_joints[1], then[1]);
  // Two heads, and three queries in each time step.
  EXPECT_NEAR(over_joints[0] + over_joints[2] + over_joints[4], 6, 1e-5);
}

// Along either axis the kept weights are those of the rows as they lie, whose columns sum to what
// the keys received.
TEST(FrameClassifier, KeptWeightsLieAsTheRows) {
  for (const char* encoder : {"attention", "attention:joints"}) {
    const Samples samples;
    const Classifier model(frame_config(encoder), 1);
    Tape tape(Context(1), TapeMode::kInference);
    HeadStatistics seen{.sees_keys = true, .keeps_weights = true};
    model.logits(tape, samples.rows(), {.attention = {&seen, 1}});
    const std::size_t rows = seen.received.size() / 2;
    ASSERT_EQ(seen.weights.size(), 2 * rows * rows);
    for (std::size_t n = 0; n < seen.received.size(); ++n) {
      double sum = 0;
      for (std::size_t i = 0; i < rows; ++i) {
        sum += double{seen.weights[(n / rows * rows + i) * rows + n % rows]};
      }
      EXPECT_NEAR(sum, seen.received[n], 1e-5) << encoder << n;
    }
  }
}

TEST(FrameClassifier, TextsHaveNoJoints) {
  ClassifierConfig c = frame_config("attention:joints");
  c.joints = 0;
  EXPECT_THROWS(resolve(c), kOptionValue, "attention:joints: the input has no joints");
}

}  // namespace
}  // namespace fovea
