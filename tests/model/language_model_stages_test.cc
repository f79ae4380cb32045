// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "fovea/model/language_model.h"
#include "tests/model/encoder_support.h"
#include "tests/support/throws.h"

namespace fovea {
namespace {

TEST(LanguageModelStages, ATransformerIsItsLayers) {
  LanguageModelConfig c = small_config();
  c.window = "3,0";
  const auto all = stages(c);
  ASSERT_EQ(all.size(), 2);
  EXPECT_EQ(all[0].branches[0].spec.window, 3);
  EXPECT_EQ(all[1].branches[0].spec.window, 0);
  EXPECT_EQ(all[1].branches[0].spec.head_dim, 4);
  EXPECT_EQ(all[1].branches[0].spec.ff, 32);
}

TEST(LanguageModelStages, TheTextOfAnEncoderBelongsToTheModelEncoder) {
  EXPECT_THROWS(resolve(config(LanguageModelKind::kEncoder)), kOptionValue, "no layers are given");
  EXPECT_THROWS(resolve(config(LanguageModelKind::kLstm, "gru")), kOptionValue,
                "--encoder belongs to --model encoder; it is --model lstm");
}

}  // namespace
}  // namespace fovea
