// SPDX-License-Identifier: Apache-2.0
#include "fovea/pretrained/rotary_scaling.h"

#include <gmock/gmock.h>

#include <string>
#include <utility>

#include "tests/support/throws.h"

namespace fovea {
namespace {

using ::testing::DoubleNear;
using ::testing::Pointwise;

RotaryRules read(Json::Object rules) {
  const Json json(std::move(rules));
  return read_rotary_rules(ForeignObject(json, "config.json"),
                           {.columns = 16, .base = 10000, .trained = 4096});
}

// The divisors of transformers 5.24 (modeling_rope_utils), in float32.
void expect_divisors(Json::Object rules, const std::vector<double>& expected,
                     double amplitude = 1) {
  const RotaryRules found = read(std::move(rules));
  EXPECT_THAT(found.scaling.divisors, Pointwise(DoubleNear(2e-6), expected));
  EXPECT_NEAR(found.scaling.amplitude, amplitude, 1e-12);
}

TEST(RotaryScaling, IsThatOfTransformers) {
  expect_divisors({{"rope_type", "default"}}, {});
  expect_divisors({{"type", "linear"}, {"factor", 3.0}}, {3, 3, 3, 3, 3, 3, 3, 3});
  expect_divisors({{"rope_type", "llama3"},
                   {"factor", 8.0},
                   {"low_freq_factor", 1.0},
                   {"high_freq_factor", 4.0},
                   {"original_max_position_embeddings", 1024}},
                  {1, 1, 1, 1, 3.239642, 8, 8, 8});
  expect_divisors(
      {{"rope_type", "yarn"}, {"factor", 4.0}, {"original_max_position_embeddings", 1024}},
      {1, 1, 1.230769, 1.6, 2.285714, 4, 4, 4}, 1.138629436111989);
  expect_divisors({{"rope_type", "yarn"},
                   {"factor", 4.0},
                   {"original_max_position_embeddings", 1024},
                   {"beta_fast", 16.0},
                   {"beta_slow", 2.0},
                   {"attention_factor", 1.5},
                   {"truncate", false}},
                  {1, 1, 1, 1.690894, 4, 4, 4, 4}, 1.5);
}

TEST(RotaryScaling, SaysHowFarAModelReads) {
  EXPECT_EQ(read({{"rope_type", "yarn"}, {"factor", 4.0}}).reach, 4 * 4096);
  EXPECT_EQ(read({{"rope_type", "linear"}, {"factor", 4.0}}).reach, 0);
  EXPECT_EQ(read({{"rope_type", "default"}, {"rope_theta", 7.0}}).base, 7);
}

TEST(RotaryScaling, RefusesWhatItDoesNotKnow) {
  EXPECT_THROWS(read({{"rope_type", "longrope"}}), kModelWrongKind,
                "\"longrope\"; fovea knows default, linear, llama3 and yarn");
  EXPECT_THROWS(read({{"rope_type", "default"}, {"partial_rotary_factor", 0.5}}), kModelWrongKind,
                "partial_rotary_factor");
  EXPECT_THROWS(read({{"rope_type", "linear"}}), kModelDamaged, "'factor' is missing");
  EXPECT_THROWS(read({{"rope_type", "yarn"}, {"factor", 2.0}, {"rope_theta", 1.0}}),
                kModelWrongKind, "rope_theta");
  EXPECT_THROWS(read({{"rope_type", "llama3"},
                      {"factor", 2.0},
                      {"low_freq_factor", 4.0},
                      {"high_freq_factor", 4.0}}),
                kModelDamaged, "high_freq_factor");
  EXPECT_THROWS(read({{"rope_type", "linear"}, {"factor", 2.0}, {"color", "red"}}), kModelWrongKind,
                "color");
}

}  // namespace
}  // namespace fovea
