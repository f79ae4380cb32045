// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include "fovea/explain/observed_text.h"
#include "tests/support/throws.h"

namespace fovea {
namespace {

using testing::ElementsAre;

TEST(ExplainParts, OrderTheLargestFirst) {
  const std::vector<float> values = {.1F, .5F, .5F, .2F};
  EXPECT_THAT(descending({values.data(), 4}), ElementsAre(1, 2, 3, 0));
}

// Of two sequences with two heads each.
TEST(ExplainParts, TheStrongestWeightIsThatOfAllSequences) {
  const ExplainedLayer layer{.name = "layer 1",
                             .heads = 2,
                             .queries = 2,
                             .keys = 2,
                             .weights = {.5F, .5F, .4F, .6F, 1, 0, 0, 1,  // sequence 0
                                         .3F, .7F, .5F, .5F, 0, 1, .9F, .1F},
                             .sequences = 2};
  const StrongestWeight first = strongest_weight(layer, 1);
  EXPECT_THAT((std::vector<index>{first.sequence, first.query, first.key}), ElementsAre(1, 0, 1));
  const StrongestWeight second = strongest_weight(layer, 2);
  EXPECT_EQ(second.sequence, 0);
}

TEST(ExplainParts, RefuseWhatHasNoMeaning) {
  for (const SaliencyMethod method : {SaliencyMethod::kRollout, SaliencyMethod::kNone}) {
    EXPECT_THROWS(require_shown(false, method), kOptionValue, "no attention");
    EXPECT_NO_THROW(require_shown(true, method));
  }
  EXPECT_NO_THROW(require_shown(false, SaliencyMethod::kGradient));
  EXPECT_THROWS(require_tokens(false), kInputTooSmall, "no token");
  EXPECT_THROWS(require_target_counts({.saliency = SaliencyMethod::kNone, .target = "a"}),
                kOptionValue, "--target: has no effect");
  EXPECT_NO_THROW(require_target_counts({.target = "a"}));
  EXPECT_EQ(in_quotes("a\n"), "\"a\\n\"");
  EXPECT_EQ(in_quotes(std::string(10'000, 'x')), '"' + std::string(37, 'x') + "...\"");
}

// What other commands call by their options has a hint of its own here.
TEST(ExplainParts, HintsNameNoOptionOfOtherCommands) {
  const auto hint_of = [](const std::string& given) {
    try {
      with_own_hint("another",
                    [&]() -> int { throw Error(ErrorCode::kInputFormat, "bad", given); });
    } catch (const Error& error) {
      EXPECT_STREQ(error.what(), "bad");
      return error.hint();
    }
    return std::string();
  };
  EXPECT_EQ(hint_of("say --word-column"), "another");
  EXPECT_EQ(hint_of("give more"), "give more");
  EXPECT_EQ(with_own_hint("another", [] { return 3; }), 3);
}

TEST(ExplainParts, WordsAreFilledOnce) {
  const std::string text(100, 'x');
  const QuotingWords words{"{0} of {1}", "{1} 的 {0}", {"{1}", text}};
  const Words whole = filled(words, QuoteLength::kWhole), cut = filled(words, QuoteLength::kShort);
  EXPECT_EQ(whole.english, "\"{1}\" of \"" + text + "\"");
  EXPECT_EQ(whole.chinese, "\"" + text + "\" 的 \"{1}\"");
  EXPECT_EQ(cut.english, "\"{1}\" of \"" + std::string(37, 'x') + "...\"");
}

}  // namespace
}  // namespace fovea
