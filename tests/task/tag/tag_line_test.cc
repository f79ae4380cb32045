// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include "fovea/task/tag/tag_predictor.h"

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

// e and its acute accent, a family of emoji with joiners, two flags.
TEST(TagLine, NoWordBeginsWithinAGraphemeCluster) {
  const TagSet tags({"B", "E", "M", "S"}, TagScheme::kBmes);
  EXPECT_EQ(words("ae\u0301", "SSS", tags), "a e\u0301");
  EXPECT_EQ(words("\U0001F468\u200D\U0001F469x", "SSSS", tags), "\U0001F468\u200D\U0001F469 x");
  EXPECT_EQ(words("\U0001F1E9\U0001F1EA\U0001F1EB\U0001F1F7", "SSSS", tags),
            "\U0001F1E9\U0001F1EA \U0001F1EB\U0001F1F7");
  EXPECT_EQ(words("e \u0301", "SS", tags), "e \u0301");
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
  const TaggedColumn column[] = {{tags, found}};
  EXPECT_EQ(tagged_lines(sentence, column, {}), "Ada\tB-x\nsaw\tI-x\n.\tO\n\n");
  EXPECT_EQ(tagged_json(sentence, column),
            R"({"words":["Ada","saw","."],"tags":["B-x","I-x","O"],"spans":[{"type":"x",)"
            R"("begin":0,"end":2,"text":"Ada saw"}]})");
  found.probabilities = {.5f, 0, 0, 0, .25f, 0, 0, 0, 1};
  EXPECT_EQ(tagged_lines(sentence, column, {.probabilities = TagProbabilities::kYes}),
            "Ada\tB-x\t0.5000\nsaw\tI-x\t0.2500\n.\tO\t1.0000\n\n");
  EXPECT_THAT(tagged_json(sentence, column), testing::HasSubstr(R"("probabilities":[0.5,0.25,1)"));
}

TEST(TagLine, TagsWithoutASchemeMarkNothing) {
  const TagSet tags({"NOUN"}, std::nullopt);
  const TaggedSentence sentence = sentence_of("a", WordSplit::kSpaces);
  const TaggedByModel found{.tags = {0}, .probabilities = {}};
  const TaggedColumn column[] = {{tags, found}};
  EXPECT_EQ(tagged_json(sentence, column), R"({"words":["a"],"tags":["NOUN"]})");
}

TEST(TagLine, SeveralColumnsHaveTheirNames) {
  const TagSet parts({"NOUN", "VERB"}, std::nullopt), names({"B-x", "O"}, TagScheme::kBio);
  const TaggedSentence sentence = sentence_of("Ada saw", WordSplit::kSpaces);
  const TaggedByModel first{.tags = {0, 1}, .probabilities = {.75f, .25f, .5f, .5f}},
      second{.tags = {0, 1}, .probabilities = {1, 0, 0, 1}};
  const TaggedColumn columns[] = {{parts, first, "2"}, {names, second, "last"}};
  EXPECT_EQ(tagged_lines(sentence, columns, {}), "Ada\tNOUN\tB-x\nsaw\tVERB\tO\n\n");
  EXPECT_EQ(tagged_lines(sentence, columns, {.probabilities = TagProbabilities::kYes}),
            "Ada\tNOUN\t0.7500\tB-x\t1.0000\nsaw\tVERB\t0.5000\tO\t1.0000\n\n");
  EXPECT_EQ(tagged_json(sentence, columns),
            R"({"words":["Ada","saw"],"columns":[{"column":"2","tags":["NOUN","VERB"],)"
            R"("probabilities":[0.75,0.5]},{"column":"last","tags":["B-x","O"],"spans":[)"
            R"({"type":"x","begin":0,"end":1,"text":"Ada"}],"probabilities":[1.0,1.0]}]})");
}

}  // namespace
}  // namespace fovea
