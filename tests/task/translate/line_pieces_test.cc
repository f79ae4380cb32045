// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include "fovea/task/translate/line_translator.h"

namespace fovea {
namespace {

using testing::ElementsAre;

std::vector<index> ends_of(std::string_view line, index most) {
  const auto tokenizer = make_byte_tokenizer({.kind = "byte"});
  return ends_of_pieces(*tokenizer, tokenizer->encode(line), most);
}

TEST(LinePieces, AreFewAndAboutEqual) {
  EXPECT_TRUE(ends_of("", 4).empty());
  EXPECT_THAT(ends_of("aaaa", 4), ElementsAre(4));
  EXPECT_THAT(ends_of("aaaaa", 4), ElementsAre(2, 5));
  EXPECT_THAT(ends_of("aaaaaaaaa", 4), ElementsAre(3, 6, 9));
}

TEST(LinePieces, EndBetweenWordsWherePiecesHaveRoom) {
  EXPECT_THAT(ends_of("abc def abc def abc def abc", 23), ElementsAre(12, 27));
  EXPECT_THAT(ends_of("aaaaaa a", 7), ElementsAre(6, 8));
  // An end at the blank would leave five for the second piece.
  EXPECT_THAT(ends_of("aa aaaaa", 4), ElementsAre(4, 8));
  for (index most = 1; most < 12; ++most) {
    const std::vector<index> ends = ends_of("a bb ccc dddd eeeee ffffff", most);
    EXPECT_EQ(std::ssize(ends), (26 + most - 1) / most);
    index begin = 0;
    for (const index end : ends) {
      EXPECT_GT(end, begin);
      EXPECT_LE(end - begin, most);
      begin = end;
    }
    EXPECT_EQ(begin, 26);
  }
}

}  // namespace
}  // namespace fovea
