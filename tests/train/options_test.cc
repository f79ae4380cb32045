// SPDX-License-Identifier: Apache-2.0
#include "fovea/train/options.h"

#include <gmock/gmock.h>

#include <cmath>

#include "tests/support/throws.h"

namespace fovea {
namespace {

TEST(TrainOptions, DefaultsAreFine) { EXPECT_NO_THROW(check_options(TrainOptions{})); }

TEST(TrainOptions, NamesTheOptionThatIsOutOfRange) {
  EXPECT_THROWS(check_options({.lr = NAN}), kOptionValue, "--lr");
  EXPECT_THROWS(check_options({.lr = INFINITY}), kOptionValue, "--lr");
  EXPECT_THROWS(check_options({.lr = 0}), kOptionValue, "--lr");
  EXPECT_THROWS(check_options({.lr = 1e-5, .min_lr = 1e-4}), kOptionValue, "--min-lr");
  EXPECT_THROWS(check_options({.warmup = -1}), kOptionValue, "--warmup");
  EXPECT_THROWS(check_options({.decay_share = 0}), kOptionValue, "--decay-share");
  EXPECT_THROWS(check_options({.decay_share = 1.5}), kOptionValue, "--decay-share");
  EXPECT_THROWS(check_options({.beta1 = 1}), kOptionValue, "--beta1");
  EXPECT_THROWS(check_options({.beta2 = NAN}), kOptionValue, "--beta2");
  EXPECT_THROWS(check_options({.epsilon = 0}), kOptionValue, "--epsilon: 0 is not above 0");
  EXPECT_THROWS(check_options({.weight_decay = -.1}), kOptionValue, "--weight-decay");
  EXPECT_THROWS(check_options({.clip = -1}), kOptionValue, "--clip");
  EXPECT_THROWS(check_options({.accumulate = 0}), kOptionValue, "--accumulate");
  EXPECT_THROWS(check_options({.stop_after = "soon"}), kOptionValue, "--stop-after");
  EXPECT_THROWS(check_options({.eval_every = "1h"}), kOptionValue, "--eval-every");
  EXPECT_THROWS(check_options({.save_every = "0u"}), kOptionValue, "--save-every");
  EXPECT_THROWS(check_options({.log_every = 0}), kOptionValue, "--log-every");
  EXPECT_THROWS(check_options({.keep = 0}), kOptionValue, "--keep");
}

TEST(TrainOptions, EveryErrorSaysWhatToDo) {
  const auto error = error_of([] { check_options({.keep = 0}); });
  ASSERT_TRUE(error);
  EXPECT_EQ(error->hint(), "--help says what --keep is for, and what it is if left out");
}

}  // namespace
}  // namespace fovea
