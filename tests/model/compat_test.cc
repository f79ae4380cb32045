// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "fovea/model/language_model.h"
#include "tests/model/support.h"
#include "tests/support/throws.h"

namespace fovea {
namespace {

TEST(Compat, DefectsAreThoseOfTheModel) {
  LanguageModelConfig c = small_config();
  c.kind = LanguageModelKind::kAttentionRnn;
  c.compat = "all";
  EXPECT_EQ(compat_of(c).attention_rnn, (AttentionRnnDefects{true, true, true}));
  EXPECT_FALSE(compat_of(c).ln_unbiased);
  c.compat = "history-only";
  EXPECT_EQ(compat_of(c).attention_rnn, (AttentionRnnDefects{false, true, false}));
  c.compat = "ln-unbiased";
  EXPECT_THROWS(
      compat_of(c), kOptionValue,
      "'ln-unbiased' is not a defect of --model attention-rnn (sum-weights, history-only, "
      "state-is-attention)");
  c.compat = "history";
  EXPECT_THROWS(compat_of(c), kOptionValue, "expected one of: sum-weights, history-only");
  c.kind = LanguageModelKind::kLstm;
  c.compat = "all";
  EXPECT_THROWS(compat_of(c), kOptionValue, "--model lstm has no known defect");
  c = small_config();
  c.compat = "all";
  EXPECT_TRUE(compat_of(c).ln_unbiased);
}

}  // namespace
}  // namespace fovea
