// SPDX-License-Identifier: Apache-2.0
#include "fovea/task/subword_options.h"

#include <gtest/gtest.h>

#include "tests/support/throws.h"

namespace fovea {
namespace {

TEST(SubwordOptions, NeedAModel) {
  EXPECT_NO_THROW(require_subword_model(true, "a.model", "--tokenizer-model"));
  EXPECT_NO_THROW(require_subword_model(false, "", "--tokenizer-model"));
  EXPECT_THROWS(require_subword_model(true, "", "--tokenizer-model"), kOptionValue,
                "needs --tokenizer-model FILE.model");
}

TEST(SubwordOptions, TheFileIsReadIfOneIsNamed) {
  EXPECT_EQ(with_subword_model({}, "").model, "");
  EXPECT_THROWS(with_subword_model({}, "no.model"), kMissingInput, "no.model");
}

}  // namespace
}  // namespace fovea
