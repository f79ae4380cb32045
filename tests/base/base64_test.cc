// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "fovea/base/random.h"
#include "fovea/base/words.h"

namespace fovea {
namespace {

TEST(Base64, IsThatOfRfc4648) {
  EXPECT_EQ(base64(""), "");
  EXPECT_EQ(base64("f"), "Zg==");
  EXPECT_EQ(base64("fo"), "Zm8=");
  EXPECT_EQ(base64("foo"), "Zm9v");
  EXPECT_EQ(base64("foobar"), "Zm9vYmFy");
  EXPECT_EQ(base64("\xFF\xFE"), "//4=");
}

TEST(Base64, GivesBackAnyBytes) {
  Random random(3, RandomUse::kTest);
  for (index length = 0; length < 200; ++length) {
    std::string bytes;
    for (index n = 0; n < length; ++n) bytes += static_cast<char>(random.below(256));
    EXPECT_EQ(bytes_of_base64(base64(bytes)), bytes);
  }
}

TEST(Base64, RefusesOtherSpellings) {
  for (const char* text :
       {"Z", "Zg", "Zg=", "Zh==", "Zm9=", "Zm9v=", "Zm9v\n", "Z-9v", "====", "Zg==Zg=="}) {
    EXPECT_EQ(bytes_of_base64(text), std::nullopt) << text;
  }
}

}  // namespace
}  // namespace fovea
