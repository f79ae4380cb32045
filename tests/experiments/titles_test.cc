// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include "experiments/translated_texts.h"
#include "tests/support/throws.h"

namespace fovea {
namespace {

TEST(Titles, AreReadAsThePublishedCodeReadsThem) {
  const SentencePairs pairs = titles_of(
      {" 你 好A ", "长", "一"}, {"Hello, World! ", std::string(60, 'x') + " y", "Cr\u00e8me."});
  EXPECT_THAT(pairs.source, testing::ElementsAre("你好a", "长", "一"));
  EXPECT_EQ(pairs.target[0], "hello , world !");
  EXPECT_EQ(pairs.target[2], "creme .");
  std::string words = "w";
  for (int n = 0; n < 28; ++n) words += " w";
  EXPECT_EQ(titles_of({"一"}, {words}).size(), 1);
  EXPECT_EQ(titles_of({"一"}, {words + " w"}).size(), 0);
  EXPECT_THROWS(titles_of({"一"}, {}), kShape, "1 lines and 0");
}

}  // namespace
}  // namespace fovea
