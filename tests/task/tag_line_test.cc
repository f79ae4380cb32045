// SPDX-License-Identifier: Apache-2.0
#include "fovea/task/tag_line.h"

#include <gmock/gmock.h>

namespace fovea {
namespace {

// Tags by their first letters: "BES".
TaggedByModel tagged(const TagSet& tags, std::string_view letters) {
  TaggedByModel found;
  for (const char letter : letters) {
    for (index k = 0; k < tags.size(); ++k) {
      if (tags.names()[static_cast<std::size_t>(k)][0] == letter) {
        found.tags.push_back(static_cast<std::int32_t>(k));
        break;
      }
    }
  }
  return found;
}

std::string words(std::string_view line, std::string_view letters, const TagSet& tags) {
  return segmented(line, words_of(line, tags, tagged(tags, letters)));
}

TEST(TagLine, BlanksComeBetweenWords) {
  const TagSet tags({"B", "E", "M", "S"}, TagScheme::kBmes);
  EXPECT_EQ(words("我们在北京", "BESBE", tags), "我们 在 北京");
  EXPECT_EQ(words(" 我们 在\u3000北京\r", "BMMBE", tags), " 我们 在\u3000北京\r");
  EXPECT_EQ(words("", "", tags), "");
  EXPECT_EQ(words(" \t", "", tags), " \t");
  const TagSet joint({"B-N", "E-N", "M-N", "S-V"}, TagScheme::kBmes);
  EXPECT_EQ(words("我们在", "BES", joint), "我们/N 在/V");
}

TEST(TagLine, JsonOfASegmenterHasItsWords) {
  const TagSet tags({"B", "E", "M", "S"}, TagScheme::kBmes);
  EXPECT_EQ(segmented_json("我们 在", tags, tagged(tags, "BES")),
            R"({"text":"我们 在","words":["我们","在"]})");
  EXPECT_EQ(segmented_json("在\r", tags, tagged(tags, "S")), R"({"text":"在","words":["在"]})");
  const TagSet joint({"B-N", "E-N", "M-N", "S-V"}, TagScheme::kBmes);
  EXPECT_EQ(segmented_json("在", joint, tagged(joint, "S")),
            R"({"text":"在","words":["在"],"tags":["V"]})");
}

TEST(TagLine, WordsOfTextBecomeLines) {
  const TagSet tags({"B-x", "I-x", "O"}, TagScheme::kBio);
  const TaggedSentence sentence = sentence_of("Ada saw.", WordSplit::kPunctuation);
  TaggedByModel found = tagged(tags, "BIO");
  EXPECT_EQ(tagged_lines(sentence, tags, found, {}), "Ada\tB-x\nsaw\tI-x\n.\tO\n\n");
  EXPECT_EQ(tagged_json(sentence, tags, found),
            R"({"words":["Ada","saw","."],"tags":["B-x","I-x","O"],"spans":[{"type":"x",)"
            R"("begin":0,"end":2,"text":"Ada saw"}]})");
  found.probabilities = {.5f, 0, 0, 0, .25f, 0, 0, 0, 1};
  EXPECT_EQ(tagged_lines(sentence, tags, found, {.probabilities = TagProbabilities::kYes}),
            "Ada\tB-x\t0.5000\nsaw\tI-x\t0.2500\n.\tO\t1.0000\n\n");
  EXPECT_THAT(tagged_json(sentence, tags, found),
              testing::HasSubstr(R"("probabilities":[0.5,0.25,1)"));
}

TEST(TagLine, TagsWithoutASchemeMarkNothing) {
  const TagSet tags({"NOUN"}, std::nullopt);
  const TaggedSentence sentence = sentence_of("a", WordSplit::kSpaces);
  EXPECT_EQ(tagged_json(sentence, tags, {.tags = {0}, .probabilities = {}}),
            R"({"words":["a"],"tags":["NOUN"]})");
}

}  // namespace
}  // namespace fovea
