// SPDX-License-Identifier: Apache-2.0
#include "fovea/linear/calibrate.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>

#include "fovea/base/random.h"
#include "fovea/linear/linear_model.h"
#include "tests/linear/support.h"

namespace fovea {
namespace {

// Logits, and labels that are drawn as factor * logit + shift says.
struct DrawnLogits {
  std::vector<float> values;
  LabelledSample labelled;

  CalibrationData data(ClassifierTask task, index outputs) const {
    return {.task = task,
            .outputs = outputs,
            .prior = std::vector<double>(static_cast<std::size_t>(outputs)),
            .values = values,
            .lengths = std::vector<float>(labelled.texts.size(), 1.0F),
            .truth = labelled.truth};
  }
};

DrawnLogits draw_logits(index texts, double factor, double shift) {
  Random random(1, RandomUse::kTest);
  std::vector<std::pair<std::int32_t, float>> drawn;
  for (index i = 0; i < texts; ++i) {
    const double z = 3 * random.normal();
    drawn.emplace_back(random.uniform() < sigmoid(factor * z + shift) ? 1 : 0,
                       static_cast<float>(z));
  }
  // As files often are: all texts of a class, then all of the next.
  std::stable_sort(drawn.begin(), drawn.end(), [](auto& a, auto& b) { return a.first < b.first; });
  DrawnLogits logits;
  for (const auto& [label, z] : drawn) {
    logits.values.push_back(z);
    logits.labelled.add("", {label});
  }
  return logits;
}

TEST(Calibrate, FindsTheFactorAndTheShift) {
  for (const double factor : {0.3, 1.0, 2.5}) {
    const DrawnLogits logits = draw_logits(20'000, factor, -0.7);
    const Calibration by =
        calibrate(Context(1), logits.data(ClassifierTask::kBinary, 1), CalibrationSize::kWhole);
    EXPECT_NEAR(by.factors[0], factor, 0.08 * factor);
    EXPECT_NEAR(by.shifts[0], -0.7, 0.1);
  }
}

// Of many texts and classes a step takes seconds.
TEST(Calibrate, StopsBeforeItsNextStep) {
  const DrawnLogits logits = draw_logits(1000, 2.5, 0);
  CalibrationData data = logits.data(ClassifierTask::kBinary, 1);
  int asked = 0;
  data.interrupted = [&] { return ++asked == 2; };
  calibrate(Context(1), data, CalibrationSize::kWhole);
  EXPECT_EQ(asked, 2);
}

// However many texts it looks at, they are not those of the first class alone.
TEST(Calibrate, IsFairToManySortedTexts) {
  const DrawnLogits logits = draw_logits(150'000, 0.8, 0.4);
  const Calibration by =
      calibrate(Context(1), logits.data(ClassifierTask::kBinary, 1), CalibrationSize::kWhole);
  EXPECT_NEAR(by.factors[0], 0.8, 0.05);
  EXPECT_NEAR(by.shifts[0], 0.4, 0.05);
}

TEST(Calibrate, FindsOneFactorForAllClasses) {
  Random random(2, RandomUse::kTest);
  DrawnLogits logits;
  for (index i = 0; i < 20'000; ++i) {
    double z[3], sum = 0;
    for (double& value : z) {
      value = 2 * random.normal();
      logits.values.push_back(static_cast<float>(value));
      sum += std::exp(0.4 * value);
    }
    double at = random.uniform() * sum;
    std::int32_t label = 0;
    while (label < 2 && (at -= std::exp(0.4 * z[label])) > 0) ++label;
    logits.labelled.add("", {label});
  }
  for (const auto size : {CalibrationSize::kTemperature, CalibrationSize::kWhole}) {
    const Calibration by =
        calibrate(Context(1), logits.data(ClassifierTask::kSingleLabel, 3), size);
    for (std::size_t k = 0; k < 3; ++k) {
      EXPECT_NEAR(by.factors[k], 0.4, 0.03);
      EXPECT_NEAR(by.shifts[k], 0, 0.06);
    }
  }
}

// Logits that say nothing, all the same, or all right: no division by 0, no endless factor.
TEST(Calibrate, StaysFinite) {
  for (const float value : {0.0F, 50.0F, -50.0F}) {
    DrawnLogits logits;
    for (index i = 0; i < 10; ++i) {
      logits.labelled.add("", {static_cast<std::int32_t>(i % 2)});
      logits.values.push_back(i % 2 ? value : -value);
    }
    for (const auto size : {CalibrationSize::kTemperature, CalibrationSize::kWhole}) {
      const CalibrationData data = logits.data(ClassifierTask::kBinary, 1);
      const Calibration by = calibrate(Context(1), data, size);
      EXPECT_GT(by.factors[0], 0) << value;
      EXPECT_LT(by.factors[0], 1000) << value;
      EXPECT_TRUE(std::isfinite(by.shifts[0])) << value;
      EXPECT_TRUE(std::isfinite(loss_of(Context(1), data, by))) << value;
    }
  }
}

// Of classes and of labels, in more blocks than one.
TEST(Calibrate, GivesTheSameBitsOnAnyNumberOfThreads) {
  Random random(3, RandomUse::kTest);
  DrawnLogits logits;
  constexpr index kOutputs = 70;
  for (index i = 0; i < 700; ++i) {
    for (index k = 0; k < kOutputs; ++k) {
      logits.values.push_back(static_cast<float>(2 * random.normal()));
    }
    logits.labelled.add("", {static_cast<std::int32_t>(i % kOutputs)});
  }
  for (const auto task : {ClassifierTask::kSingleLabel, ClassifierTask::kMultiLabel}) {
    const CalibrationData data = logits.data(task, kOutputs);
    const Calibration one = calibrate(Context(1), data, CalibrationSize::kWhole);
    const Calibration three = calibrate(Context(3), data, CalibrationSize::kWhole);
    EXPECT_EQ(one.factors, three.factors);
    EXPECT_EQ(one.shifts, three.shifts);
    EXPECT_EQ(loss_of(Context(1), data, one), loss_of(Context(3), data, one));
    EXPECT_EQ(predictions_of(Context(1), data, one, kOutputs),
              predictions_of(Context(3), data, one, kOutputs));
  }
}

// The labels of the outputs may be some of all.
TEST(Calibrate, KnowsWhichLabelAnOutputIs) {
  const DrawnLogits logits = draw_logits(5000, 0.5, 0);
  CalibrationData data = logits.data(ClassifierTask::kMultiLabel, 1);
  const std::vector<index> second = {1};
  data.labels = second;
  EXPECT_NEAR(calibrate(Context(1), data, CalibrationSize::kTemperature).factors[0], 0.5, 0.05);
  const CalibrationData binary = logits.data(ClassifierTask::kBinary, 1);
  EXPECT_EQ(calibrate(Context(1), data, CalibrationSize::kWhole).factors,
            calibrate(Context(1), binary, CalibrationSize::kWhole).factors);
}

// Logits whose probability is no sigmoid: 0.3 below 0, 0.6 above.
TEST(Calibrate, FindsStepsThatNoSigmoidHas) {
  Random random(4, RandomUse::kTest);
  DrawnLogits logits;
  for (index i = 0; i < 20'000; ++i) {
    const double z = 3 * random.normal();
    logits.values.push_back(static_cast<float>(z));
    logits.labelled.add("", {random.uniform() < (z < 0 ? 0.3 : 0.6) ? 1 : 0});
  }
  const CalibrationData data = logits.data(ClassifierTask::kBinary, 1);
  const Calibration by = calibrate(Context(1), data, CalibrationSize::kWhole);
  const std::vector<IsotonicMap> maps = isotonic_maps(Context(1), data, by);
  const std::vector<float> p = predictions_of(Context(2), data, by, 2, maps);
  double off = 0, off_without = 0;
  const std::vector<float> without = predictions_of(Context(2), data, by, 2);
  for (std::size_t i = 0; i < logits.values.size(); ++i) {
    const double truth = logits.values[i] < 0 ? 0.3 : 0.6;
    off += std::abs(double{p[2 * i + 1]} - truth);
    off_without += std::abs(double{without[2 * i + 1]} - truth);
  }
  EXPECT_LT(off / 20'000, 0.02);
  EXPECT_GT(off_without / 20'000, 0.05);
  // By the texts of other folds.
  std::vector<std::int32_t> fold(20'000, 0);
  std::fill(fold.begin() + 10'000, fold.end(), 1);
  const auto others = isotonic_maps(Context(1), data, by, fold, 0);
  EXPECT_NE(others[0].probabilities, maps[0].probabilities);
  std::fill(fold.begin(), fold.end(), 0);  // equal texts are in one fold
  EXPECT_TRUE(isotonic_maps(Context(1), data, by, fold, 0).empty());
}

TEST(Calibrate, LosesNothing) {
  const DrawnLogits logits = draw_logits(2000, 0.5, 1);
  const CalibrationData data = logits.data(ClassifierTask::kBinary, 1);
  const double plain = loss_of(Context(1), data, {{1}, {0}});
  const double scaled =
      loss_of(Context(1), data, calibrate(Context(1), data, CalibrationSize::kTemperature));
  const double whole =
      loss_of(Context(1), data, calibrate(Context(1), data, CalibrationSize::kWhole));
  EXPECT_LT(scaled, plain);
  EXPECT_LT(whole, scaled);
  // The mean of the negative logs of what predictions_of() gives.
  const std::vector<float> p = predictions_of(Context(1), data, {{1}, {0}}, 2);
  double sum = 0;
  for (index i = 0; i < 2000; ++i) {
    sum -= std::log(double{p[static_cast<std::size_t>(2 * i + data.truth.labels_of(i)[0])]});
  }
  EXPECT_NEAR(sum / 2000, plain, 1e-5);
}

}  // namespace
}  // namespace fovea
