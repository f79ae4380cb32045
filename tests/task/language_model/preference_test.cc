// SPDX-License-Identifier: Apache-2.0
#include "fovea/task/language_model/preference.h"

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <vector>

#include "fovea/base/file.h"
#include "tests/support/folder.h"
#include "tests/support/throws.h"

namespace fovea {
namespace {

namespace fs = std::filesystem;

// Equation 7 of Rafailov et al. 2023, word by word.
double loss_by_hand(const std::vector<double>& losses, const std::vector<double>& reference,
                    double beta) {
  double sum = 0;
  for (std::size_t n = 0; n < reference.size(); ++n) {
    const double chosen = -losses[2 * n], rejected = -losses[2 * n + 1];
    const double x = beta * (chosen - rejected - reference[n]);
    sum -= std::log(1 / (1 + std::exp(-x)));
  }
  return sum;
}

TEST(Preferences, LossAndFactorsAreThoseOfTheEquation) {
  const std::vector<double> losses = {3, 4.5, 20, 1, 7, 7}, reference = {0.5, -20, 2};
  for (const double beta : {0.1, 0.7, 3.0}) {
    const PreferenceStep step = preference_step(losses, reference, beta);
    EXPECT_NEAR(step.loss, loss_by_hand(losses, reference, beta), 1e-12);
    EXPECT_EQ(step.preferred, 2);
    ASSERT_EQ(step.factors.size(), losses.size());
    for (std::size_t n = 0; n < losses.size(); ++n) {
      constexpr double kStep = 1e-5;
      std::vector<double> more = losses, less = losses;
      more[n] += kStep;
      less[n] -= kStep;
      const double slope =
          (loss_by_hand(more, reference, beta) - loss_by_hand(less, reference, beta)) / (2 * kStep);
      EXPECT_NEAR(step.factors[n], slope, 1e-8);
    }
  }
}

TEST(Preferences, HugeDifferencesStayFinite) {
  const std::vector<double> losses = {0, 1e5, 1e5, 0}, reference = {0, 0};
  const PreferenceStep step = preference_step(losses, reference, 1);
  EXPECT_DOUBLE_EQ(step.loss, 1e5);
  EXPECT_EQ(step.factors, (std::vector<double>{0, 0, 1, -1}));
}

TEST(Preferences, ReferencesAreReadAsTheyWereWritten) {
  const TestFolder folder;
  const PreferenceReference reference{.training = {1.5, -2e-17, 1.0 / 3}, .validation = {}};
  write_reference(folder.path(), reference);
  const PreferenceReference read = read_reference(folder.path(), 3, 0);
  EXPECT_EQ(read.training, reference.training);
  EXPECT_TRUE(read.validation.empty());
  EXPECT_THROWS(read_reference(folder.path(), 4, 0), kModelDamaged, "expected 4 numbers");
  const fs::path file = folder.path() / kReferenceName;
  std::string bytes = read_file(file);
  bytes.back() ^= 1;
  write_file_atomically(file, bytes);
  EXPECT_THROWS(read_reference(folder.path(), 3, 0), kModelDamaged, "checksum");
  fs::remove(file);
  EXPECT_THROWS(read_reference(folder.path(), 3, 0), kModelMissing, "no such file");
}

}  // namespace
}  // namespace fovea
