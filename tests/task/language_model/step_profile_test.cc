// SPDX-License-Identifier: Apache-2.0
#include "fovea/task/language_model/step_profile.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <numeric>
#include <stdexcept>
#include <string>

#include "fovea/base/context.h"
#include "tests/support/throws.h"

namespace fovea {
namespace {

LanguageModelSettings tiny() {
  LanguageModelSettings settings;
  settings.model.layers = 2;
  settings.model.heads = 2;
  settings.model.width = 16;
  settings.model.block = 8;
  settings.model.vocabulary = 20;
  settings.text.batch_size = 3;
  return settings;
}

const StepPart& part_of(const StepProfile& profile, std::string_view what,
                        const std::vector<index>& shape) {
  const auto part = std::find_if(profile.parts.begin(), profile.parts.end(), [&](const auto& one) {
    return one.what == what && one.shape == shape;
  });
  if (part == profile.parts.end()) throw std::runtime_error("no part " + std::string(what));
  return *part;
}

TEST(StepProfile, HasEveryProductOfTheStep) {
  const StepProfile profile = profile_step(Context(1), tiny(), 2);
  EXPECT_EQ(profile.tokens, 24);
  EXPECT_EQ(part_of(profile, "product", {24, 48, 16}).calls, 2);        // queries, keys, values
  EXPECT_EQ(part_of(profile, "product", {24, 16, 16}).calls, 2 * 2);    // out, and its dx
  EXPECT_EQ(part_of(profile, "product", {24, 64, 16}).calls, 2 * 2);    // up; dx of down
  EXPECT_EQ(part_of(profile, "product", {24, 20, 16}).calls, 1);        // logits
  EXPECT_EQ(part_of(profile, "product A^T B", {64, 16, 24}).calls, 2);  // dW of up
  EXPECT_EQ(part_of(profile, "attention", {24, 2, 8}).calls, 2);
  EXPECT_EQ(part_of(profile, "AdamW", {profile.parameters, 1}).calls, 1);
}

TEST(StepProfile, AddsUpToTheStep) {
  const StepProfile profile = profile_step(Context(2), tiny(), 3);
  const double parts =
      std::accumulate(profile.parts.begin(), profile.parts.end(), 0.0,
                      [](double sum, const StepPart& part) { return sum + part.seconds; });
  EXPECT_NEAR(parts + profile.waiting_seconds + profile.other_seconds, profile.profiled_seconds,
              1e-9);
  EXPECT_GE(profile.other_seconds, 0);
  const double operations = std::accumulate(
      profile.parts.begin(), profile.parts.end(), 0.0,
      [](double sum, const StepPart& part) { return sum + part.gflops * part.seconds; });
  EXPECT_NEAR(profile.gflops * profile.step_seconds, operations, 1e-9);
  EXPECT_NEAR(profile.share * profile.peak_gflops, profile.gflops, 1e-9 * profile.gflops);
  for (const StepPart& part : profile.parts) EXPECT_GE(part.seconds, 0) << part.what;
  EXPECT_TRUE(std::is_sorted(profile.parts.begin(), profile.parts.end(),
                             [](const auto& a, const auto& b) { return a.seconds > b.seconds; }));
}

TEST(StepProfile, TimeFromCoreToCoreNeedsTwoThreads) {
  EXPECT_EQ(profile_step(Context(1), tiny(), 1).core_to_core_nanoseconds, 0);
  if (available_cores() < 2) GTEST_SKIP() << "one core";
  constexpr double kMost = 6e4;
  // A busy machine may not give the second thread a core for a second, or take it away again: then
  // nothing was measured, or how long it was away.
  double least = 0;
  for (int tries = 0; (least == 0 || least >= kMost) && tries < 60; ++tries)
    least = profile_step(Context(2), tiny(), 1).core_to_core_nanoseconds;
  EXPECT_GT(least, 1);
  EXPECT_LT(least, kMost);
}

TEST(StepProfile, RefusesAModelThatCannotBe) {
  LanguageModelSettings settings = tiny();
  settings.model.heads = 3;
  EXPECT_THROWS(profile_step(Context(1), settings, 1), kShape, "--width: 16");
}

}  // namespace
}  // namespace fovea
