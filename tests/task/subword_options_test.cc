// SPDX-License-Identifier: Apache-2.0
#include "fovea/task/subword_options.h"

#include <gtest/gtest.h>

#include "tests/support/throws.h"

namespace fovea {
namespace {

TEST(SubwordOptions, AModelAndSubwordsGoTogether) {
  EXPECT_NO_THROW(check_subword_model(true, "a.model", "--tokenizer-model"));
  EXPECT_NO_THROW(check_subword_model(false, "", "--tokenizer-model"));
  EXPECT_THROWS(check_subword_model(true, "", "--tokenizer-model"), kOptionValue,
                "needs --tokenizer-model FILE.model");
  EXPECT_THROWS(check_subword_model(false, "a.model", "--target-tokenizer-model"), kOptionValue,
                "--target-tokenizer-model: has no effect");
}

TEST(SubwordOptions, SamplingIsOfSubwords) {
  EXPECT_NO_THROW(check_subword_sampling(false, 0));
  EXPECT_NO_THROW(check_subword_sampling(true, 1));
  EXPECT_THROWS(check_subword_sampling(true, 1.5), kOptionValue, "--subword-sampling");
  EXPECT_THROWS(check_subword_sampling(true, -0.1), kOptionValue, "--subword-sampling");
  EXPECT_THROWS(check_subword_sampling(false, 0.1), kOptionValue, "has no effect without");
}

TEST(SubwordOptions, TheFileIsReadIfOneIsNamed) {
  EXPECT_EQ(with_subword_model({}, "").model, "");
  EXPECT_THROWS(with_subword_model({}, "no.model"), kMissingInput, "no.model");
}

}  // namespace
}  // namespace fovea
