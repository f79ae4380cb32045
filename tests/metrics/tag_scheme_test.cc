// SPDX-License-Identifier: Apache-2.0
#include "fovea/metrics/tag_scheme.h"

#include <gmock/gmock.h>

#include "fovea/base/random.h"
#include "tests/support/throws.h"

namespace fovea {
namespace {

using enum TagScheme;
using testing::ElementsAre;
using testing::IsEmpty;
using Tags = std::vector<std::string>;
constexpr TagScheme kSchemes[] = {kIob1, kBio, kBioes, kBmes};

std::vector<ParsedTag> parsed(const Tags& tags, TagScheme scheme, TagTypes& types) {
  std::vector<ParsedTag> result;
  for (const std::string& tag : tags) result.push_back(parse_tag(tag, scheme, types));
  return result;
}
std::vector<ParsedTag> parsed(const Tags& tags, TagScheme scheme) {
  TagTypes types;
  types.number_of("x");
  types.number_of("y");
  return parsed(tags, scheme, types);
}

/// Every tag of a scheme with two types, and O.
Tags all_tags(TagScheme scheme) {
  Tags tags{"O"};
  const std::string letters = scheme == kBioes ? "BIES" : scheme == kBmes ? "BMES" : "BI";
  for (const char letter : letters) {
    tags.push_back(std::string(1, letter) + "-x");
    tags.push_back(std::string(1, letter) + "-y");
  }
  return tags;
}

/// Calls f with every sentence of `length` tags.
template <class F>
void for_each_sentence(TagScheme scheme, std::size_t length, F&& f) {
  const Tags tags = all_tags(scheme);
  std::vector<std::size_t> at(length);
  for (;;) {
    Tags sentence;
    for (const std::size_t i : at) sentence.push_back(tags[i]);
    f(sentence);
    auto digit = at.begin();
    while (digit != at.end() && *digit + 1 == tags.size()) *digit++ = 0;
    if (digit == at.end()) return;
    ++*digit;
  }
}

TEST(TagScheme, ReadsAndWritesTags) {
  TagTypes types;
  EXPECT_EQ(parse_tag("O", kBio, types), ParsedTag{});
  EXPECT_EQ(parse_tag("B-person", kBio, types), (ParsedTag{TagPart::kBegin, 0}));
  EXPECT_EQ(parse_tag("M-creative-work", kBmes, types), (ParsedTag{TagPart::kInside, 1}));
  EXPECT_EQ(parse_tag("S", kBioes, types), (ParsedTag{TagPart::kSingle, 2}));
  EXPECT_THAT(types.names(), ElementsAre("person", "creative-work", ""));
  EXPECT_EQ(tag_name({TagPart::kInside, 1}, kBmes, types), "M-creative-work");
  EXPECT_EQ(tag_name({TagPart::kInside, 1}, kBioes, types), "I-creative-work");
  EXPECT_EQ(tag_name({TagPart::kSingle, 2}, kBmes, types), "S");
  EXPECT_EQ(tag_name({}, kBmes, types), "O");
}

TEST(TagScheme, RefusesWhatIsNoTagOfIt) {
  TagTypes types;
  for (const char* const tag : {"", "B-", "E-x", "o", "O-x", "Bx", "M", "I_x", " "}) {
    EXPECT_FALSE(is_tag(tag, kBio)) << tag;
    EXPECT_THROWS(parse_tag(tag, kBio, types), kInputFormat,
                  "is not one of bio: O, B or B-TYPE, I");
  }
  EXPECT_FALSE(is_tag("I-x", kBmes));
  EXPECT_FALSE(is_tag("M-x", kBioes));
  EXPECT_THROWS(parse_tag("X\x1b[31m", kBmes, types), kInputFormat, "\\x1b");
}

TEST(TagScheme, WritesSpansByTheRulesOfEach) {
  const Tags bio{"B-x", "I-x", "B-x", "O", "B-y", "B-x", "I-x", "I-x"};
  EXPECT_THAT(convert_tags(bio, kBio, kIob1),
              ElementsAre("I-x", "I-x", "B-x", "O", "I-y", "I-x", "I-x", "I-x"));
  EXPECT_THAT(convert_tags(bio, kBio, kBioes),
              ElementsAre("B-x", "E-x", "S-x", "O", "S-y", "B-x", "I-x", "E-x"));
  EXPECT_THAT(convert_tags(bio, kBio, kBmes),
              ElementsAre("B-x", "E-x", "S-x", "O", "S-y", "B-x", "M-x", "E-x"));
  EXPECT_THAT(convert_tags({}, kBio, kBmes), IsEmpty());
}

// Every sentence of up to 4 tags: those that keep to the scheme convert there and back; the others
// become one that does, and what was repaired is counted.
TEST(TagScheme, ConversionIsExactAndRepairsAreCounted) {
  for (const TagScheme from : kSchemes)
    for (const TagScheme to : kSchemes)
      for (std::size_t length = 0; length <= (from == to ? 4 : 3); ++length) {
        for_each_sentence(from, length, [&](const Tags& tags) {
          TagRepairs repairs;
          const Tags other = convert_tags(tags, from, to, &repairs);
          const bool keeps = keeps_scheme(parsed(tags, from), from);
          ASSERT_EQ(repairs.total() == 0, keeps) << testing::PrintToString(tags);
          ASSERT_EQ(repairs.sentences, keeps ? 0 : 1);
          ASSERT_TRUE(keeps_scheme(parsed(other, to), to)) << testing::PrintToString(other);
          const Tags back = convert_tags(other, to, from);
          ASSERT_EQ(back, convert_tags(tags, from, from));
          ASSERT_EQ(back == tags, keeps);
        });
      }
}

TEST(TagScheme, BothReadingsAgreeOnWhatKeepsToIt) {
  for (const TagScheme scheme : kSchemes)
    for_each_sentence(scheme, 3, [&](const Tags& tags) {
      const auto sentence = parsed(tags, scheme);
      if (keeps_scheme(sentence, scheme)) {
        ASSERT_EQ(spans_of(sentence, scheme, SpanReading::kStrict), spans_of(sentence, scheme))
            << testing::PrintToString(tags);
      }
    });
}

TEST(TagScheme, RepairsAreCountedByKind) {
  const auto repairs = [](const Tags& tags, TagScheme scheme) {
    return count_repairs(parsed(tags, scheme), scheme);
  };
  EXPECT_EQ(repairs({"I-x", "B-y", "I-x"}, kBio), (TagRepairs{.orphans = 2, .sentences = 1}));
  EXPECT_EQ(repairs({"B-x", "O", "E-y", "M-x"}, kBmes),
            (TagRepairs{.orphans = 2, .unclosed = 2, .sentences = 1}));
  EXPECT_EQ(repairs({"B-x", "I-x"}, kIob1), (TagRepairs{.needless = 1, .sentences = 1}));
  EXPECT_EQ(repairs({"B", "M", "E", "S"}, kBmes), TagRepairs{});
  TagRepairs sum{.orphans = 1, .unclosed = 2, .needless = 3, .sentences = 4};
  sum += sum;
  EXPECT_EQ(sum, (TagRepairs{.orphans = 2, .unclosed = 4, .needless = 6, .sentences = 8}));
  EXPECT_EQ(sum.total(), 12);
}

// The rules allow a path exactly where the whole sentence keeps to the scheme.
TEST(TagScheme, RulesAreThoseOfWholeSentences) {
  for (const TagScheme scheme : kSchemes) {
    const auto list = parsed(all_tags(scheme), scheme);
    const TagRules rules = rules_of(list, scheme);
    const std::size_t K = list.size();
    ASSERT_EQ(rules.transitions.size(), K * K);
    for (std::size_t a = 0; a < K; ++a)
      for (std::size_t b = 0; b < K; ++b)
        for (std::size_t c = 0; c < K; ++c) {
          const bool allowed = rules.start[a] && rules.transitions[a * K + b] &&
                               rules.transitions[b * K + c] && rules.end[c];
          ASSERT_EQ(allowed, keeps_scheme(std::vector{list[a], list[b], list[c]}, scheme));
        }
  }
}

TEST(TagScheme, SpansOutOfOrderAreRefused) {
  const TagSpan twice[] = {{0, 2, 0}, {1, 3, 0}}, beyond[] = {{2, 4, 0}}, empty[] = {{1, 1, 0}};
  EXPECT_THROWS(tags_of(twice, 3, kBio), kShape, "the span from 1 to 3 is out of order");
  EXPECT_THROWS(tags_of(beyond, 3, kBio), kShape, "beyond the 3 tokens");
  EXPECT_THROWS(tags_of(empty, 3, kBio), kShape, "the span from 1 to 1");
}

}  // namespace
}  // namespace fovea
