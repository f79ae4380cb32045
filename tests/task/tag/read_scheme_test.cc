// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include "fovea/task/tag/read_sentences.h"
#include "tests/support/throws.h"

namespace fovea {
namespace {

using testing::HasSubstr;
using Tags = std::vector<std::string>;

ReadScheme read(const std::vector<Tags>& tags, TagScheme otherwise = TagScheme::kBio) {
  std::vector<TaggedSentence> sentences;
  for (const Tags& of_one : tags) {
    sentences.push_back({.words = of_one, .tags = {of_one}, .lines = {}, .source = {}});
  }
  return read_scheme(
      sentences, 0, otherwise,
      {.place = [](std::size_t i, std::size_t w) { return fmt::format("f:{}:{}", i, w); },
       .hint = "what to do"});
}

TEST(ReadScheme, TellsIob1FromBioByWhatEachWouldRepair) {
  EXPECT_EQ(read({{"O", "I-x", "I-x", "O"}, {"I-x", "B-x", "I-y"}}).scheme, TagScheme::kIob1);
  EXPECT_EQ(read({{"I-x"}, {"O"}}).repairs.total(), 0);
  EXPECT_EQ(read({{"B-x", "I-x", "O"}, {"B-x", "B-x"}}).scheme, TagScheme::kBio);
  // One tag of many is wrong: that does not make it the other scheme.
  const ReadScheme bio = read({{"B-x", "I-x"}, {"O", "B-y"}, {"O", "I-x"}});
  EXPECT_EQ(bio.scheme, TagScheme::kBio);
  EXPECT_EQ(bio.repairs.orphans, 1);
  const ReadScheme iob1 = read({{"I-x", "I-x"}, {"O", "I-y"}, {"O", "B-x"}});
  EXPECT_EQ(iob1.scheme, TagScheme::kIob1);
  EXPECT_EQ(iob1.repairs.needless, 1);
  EXPECT_EQ(read({{"O", "B-x"}, {"O", "I-x"}}).scheme, TagScheme::kBio) << "as many repairs";
}

TEST(ReadScheme, FindsTheOthersByTheirLetters) {
  EXPECT_EQ(read({{"B-x", "E-x"}, {"I-y"}}).scheme, TagScheme::kBioes);
  EXPECT_EQ(read({{"B", "M", "E"}, {"S"}}).scheme, TagScheme::kBmes);
  EXPECT_EQ(read({{"O"}}, TagScheme::kBmes).scheme, TagScheme::kBmes);
}

TEST(ReadScheme, NamesTheWordOfATagThatIsNone) {
  EXPECT_THROWS(read({{"B-x"}, {"O", "X-y"}}), kInputFormat,
                "f:1:1: expected a tag of the scheme bio, got X-y");
}

TEST(ReadScheme, ReadsTheColumnThatIsAsked) {
  const std::vector<TaggedSentence> sentences{
      {.words = {"a", "b"}, .tags = {{"N", "V"}, {"I-x", "O"}}, .lines = {1, 2}, .source = {}}};
  const SchemePlaces places{
      .place = [](std::size_t, std::size_t w) { return fmt::format("f:{}", w); },
      .hint = "what to do",
      .where = " in column 3"};
  EXPECT_EQ(read_scheme(sentences, 1, TagScheme::kBio, places).scheme, TagScheme::kIob1);
  EXPECT_THROWS(read_scheme(sentences, 0, TagScheme::kBio, places), kInputFormat,
                "f:0: expected a tag of the scheme bio in column 3, got N");
}

TEST(BrokenTags, SaysHowManyAndWhich) {
  EXPECT_THAT(broken_tags(read({{"B-x", "I-x"}, {"B-x"}, {"I-x", "I-y"}})),
              HasSubstr("tags that break the scheme bio: 2 in 1 sentence, the first at f:2:0 (2 "
                        "spans do not begin"));
  EXPECT_THAT(broken_tags(read({{"B-x", "O"}, {"B-x", "E-x"}, {"I-x"}})),
              HasSubstr("bioes: 3 in 2 sentences, the first at f:0:0 (1 span does not begin as "
                        "it says, 2 do not end so)"));
}

}  // namespace
}  // namespace fovea
