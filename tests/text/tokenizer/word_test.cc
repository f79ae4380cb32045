// SPDX-License-Identifier: Apache-2.0
// The tokenizer of words.
#include <gmock/gmock.h>

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "fovea/base/random.h"
#include "fovea/text/tokenizer.h"
#include "fovea/text/utf8.h"
#include "fovea/text/words.h"
#include "tests/support/throws.h"

namespace fovea {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

std::unique_ptr<Tokenizer> learned(std::string_view text, const LearnOptions& options = {}) {
  return make_tokenizer(learn_words(text, "train.txt", options));
}

std::vector<std::string> words_of(const Tokenizer& tokenizer) {
  std::vector<std::string> words;
  for (const CountedWord& word : tokenizer.data().words) words.push_back(word.word);
  return words;
}

TEST(WordTokenizer, NumbersWordsByFrequencyThenFirstOccurrence) {
  constexpr std::string_view text = "b a c\nc b d a\nc e";
  const auto plain = learned(text, {.marks = false});
  EXPECT_THAT(words_of(*plain), ElementsAre("c", "b", "a"));
  EXPECT_EQ(plain->vocabulary_size(), 2 + 3);
  EXPECT_THAT(plain->encode("a b c d zzz"), ElementsAre(4, 3, 2, 1, 1));
  const auto marked = learned(text);
  EXPECT_EQ(marked->vocabulary_size(), 4 + 3);
  EXPECT_THAT(marked->encode("a b c d"), ElementsAre(6, 5, 4, 1));
  EXPECT_EQ(marked->special().begin, 2);
  EXPECT_EQ(marked->special().end, 3);
  EXPECT_EQ(marked->special().unknown, 1);
}

TEST(WordTokenizer, KeepsWordsThatOccurOftenEnough) {
  constexpr std::string_view text = "one two two three three three";
  EXPECT_THAT(words_of(*learned(text, {.min_count = 1})), ElementsAre("three", "two", "one"));
  EXPECT_THAT(words_of(*learned(text, {.min_count = 2})), ElementsAre("three", "two"));
  EXPECT_THAT(words_of(*learned(text, {.min_count = 3})), ElementsAre("three"));
  EXPECT_EQ(learned(text, {.min_count = 3})->data().unknown, 3);
  EXPECT_THROWS(learned(text, {.min_count = 4}), kInputTooSmall,
                "train.txt is too small: none of its 6 words occurs 4 times");
  EXPECT_THROWS(learned(" \n", {.min_count = 1}), kInputTooSmall, "train.txt has no words");
  EXPECT_THROWS(learned("a \xFF"), kEncoding, "train.txt:1:3: invalid UTF-8");
}

TEST(WordTokenizer, SplitsAtAnyWhiteSpace) {
  const auto tokenizer = learned("a a b b", {.marks = false});
  EXPECT_THAT(tokenizer->encode("a\tb\u00A0a\u3000\u2009b\r\n"), ElementsAre(2, 3, 2, 3));
  EXPECT_THAT(tokenizer->encode(" \n"), IsEmpty());
  EXPECT_EQ(tokenizer->token_count("a\tb\u00A0a\u3000\u2009b\r\n"), 4);
}

TEST(TakeWord, EndsAtPunctuation) {
  const auto words = [](std::string_view text) {
    std::vector<std::string> found;
    while (true) {
      const std::string_view word = take_word(text, WordSplit::kPunctuation);
      if (word.empty()) return found;
      const std::size_t first = word.find_first_not_of(" \t\n");
      if (first != std::string_view::npos) found.emplace_back(word.substr(first));
    }
  };
  EXPECT_THAT(words("Don't stop, now!"), ElementsAre("Don't", "stop", ",", "now", "!"));
  EXPECT_THAT(words("'tis the 'end'"), ElementsAre("'", "tis", "the", "'", "end", "'"));
  EXPECT_THAT(words("a<br />b 3.5 ..."),
              ElementsAre("a", "<", "br", "/", ">", "b", "3", ".", "5", ".", ".", "."));
  EXPECT_THAT(words("\u00C9t\u00E9\u2014e\u0301"),
              ElementsAre("\u00C9t\u00E9", "\u2014", "e\u0301"));
  EXPECT_THAT(words(" \n"), IsEmpty());
  EXPECT_EQ(count_words("Don't stop, now!", WordSplit::kPunctuation), 5);
  EXPECT_EQ(count_words("Don't stop, now!"), 3);
}

TEST(WordTokenizer, CanPutTextIntoLowerCase) {
  const auto tokenizer = learned("The THE \u00C9t\u00E9 \u00E9T\u00C9", {.lower = true});
  EXPECT_THAT(words_of(*tokenizer), ElementsAre("the", "\u00E9t\u00E9"));
  EXPECT_EQ(tokenizer->decode(tokenizer->encode("tHe \u00C9T\u00C9")), "the \u00E9t\u00E9");
  EXPECT_EQ(learned("The the the")->decode(learned("The the the")->encode("The the")), "<unk> the");
}

TEST(WordTokenizer, WordsSpelledAsSpecialTokensAreUnknown) {
  constexpr std::string_view text = "<pad> <pad> <unk> <unk> <s> <s> </s> </s> a a";
  const auto marked = learned(text);
  EXPECT_THAT(words_of(*marked), ElementsAre("a"));
  EXPECT_EQ(marked->data().unknown, 8);
  EXPECT_THAT(marked->encode("<pad> <unk> <s> </s> a"), ElementsAre(1, 1, 1, 1, 4));
  const auto plain = learned(text, {.marks = false});
  EXPECT_THAT(words_of(*plain), ElementsAre("<s>", "</s>", "a"));
  EXPECT_THAT(plain->encode("<pad> <unk> <s> </s> a"), ElementsAre(1, 1, 2, 3, 4));
}

TEST(WordTokenizer, TakesTheWordsOfAList) {
  const auto tokenizer = learned("fox fox dog", {.min_count = 9, .words = {"cat", "fox"}});
  EXPECT_EQ(tokenizer->data().words, (std::vector<CountedWord>{{"cat", 0}, {"fox", 2}}));
  EXPECT_EQ(tokenizer->data().unknown, 1);
  EXPECT_THAT(tokenizer->encode("dog fox cat"), ElementsAre(1, 5, 4));
  EXPECT_FALSE(tokenizer->occurs_in_learned_text(4));
  EXPECT_THROWS(learned("a b", {.words = {"c"}}), kInputTooSmall, "none of the words of the voc");
}

TEST(WordTokenizer, KnowsWhichTokensItsTextHolds) {
  const auto some = learned("a a b");
  const auto all = learned("a a b", {.min_count = 1});
  EXPECT_TRUE(some->occurs_in_learned_text(kUnknownWord));
  EXPECT_FALSE(all->occurs_in_learned_text(kUnknownWord));
  for (const token id : {kPadToken, kBeginWord, kEndWord}) {
    EXPECT_FALSE(some->occurs_in_learned_text(id));
  }
  EXPECT_TRUE(some->occurs_in_learned_text(4));
}

TEST(WordTokenizer, CountsTheBytesThatTokensPredict) {
  const auto tokenizer = learned("fox fox \u72D0 \u72D0");
  EXPECT_THAT(tokenizer->bytes_predicted(), ElementsAre(0, 0, 0, 0, 4, 4));
}

// The plain definition: characters one by one, and a map.
std::string by_definition(std::string_view text, const std::map<std::string, index>& known) {
  std::string out, word;
  const auto end_word = [&] {
    if (word.empty()) return;
    out += (out.empty() ? "" : " ") + (known.contains(word) ? word : "<unk>");
    word.clear();
  };
  while (!text.empty()) {
    const DecodedCharacter c = decode_character(text);
    if (is_white_space(c.value)) {
      end_word();
    } else {
      word += text.substr(0, static_cast<std::size_t>(c.length));
    }
    text.remove_prefix(static_cast<std::size_t>(c.length));
  }
  end_word();
  return out;
}

std::string draw_text(Random& random) {
  constexpr std::u32string_view kCharacters = U"ab\u72D0\U00020000\u0301 \n\u00A0\u3000\u200B";
  std::string text;
  for (index i = random.below(60); i > 0; --i) {
    append_utf8(text, kCharacters[static_cast<std::size_t>(
                          random.below(static_cast<index>(kCharacters.size())))]);
  }
  return text;
}

TEST(WordTokenizer, GivesBackTheWordsOfAnyText) {
  Random random(8, RandomUse::kTest);
  std::string training = "a a ";
  for (int i = 0; i < 200; ++i) training += draw_text(random);
  const auto tokenizer = learned(training);
  std::map<std::string, index> known;
  for (const CountedWord& word : tokenizer->data().words) known.emplace(word.word, word.count);
  EXPECT_GT(known.size(), 20u);
  for (int round = 0; round < 20000; ++round) {
    const std::string text = draw_text(random);
    const std::vector<token> ids = tokenizer->encode(text);
    ASSERT_EQ(static_cast<index>(ids.size()), tokenizer->token_count(text));
    const std::string decoded = tokenizer->decode(ids);
    ASSERT_EQ(decoded, by_definition(text, known)) << escape_text(text);
    ASSERT_EQ(tokenizer->encode(decoded), ids);
    StreamDecoder stream(*tokenizer);
    std::string streamed;
    for (const token id : ids) streamed += stream.push(id);
    ASSERT_EQ(streamed + stream.finish(), decoded);
  }
}

TEST(WordTokenizer, AStreamGoesOnBehindItsPrompt) {
  const auto tokenizer = learned("the the fox fox", {.marks = false});
  const auto continued = [&](std::string_view before) {
    StreamDecoder stream(*tokenizer, before);
    std::string text;
    for (const token id : {3, 0, 1}) text += stream.push(id);
    return text + stream.finish();
  };
  EXPECT_EQ(continued(""), "fox <unk>");
  EXPECT_EQ(continued("the"), " fox <unk>");
  EXPECT_EQ(continued("the "), "fox <unk>");
  EXPECT_EQ(continued("the\u3000"), "fox <unk>");
  EXPECT_EQ(continued("\u72D0"), " fox <unk>");
}

TEST(WordTokenizer, TrustsNoData) {
  using Words = std::vector<CountedWord>;
  for (const Words& bad :
       {Words{{"a", 1}, {"a", 1}}, Words{{"", 1}}, Words{{"a b", 1}}, Words{{"a\u00A0", 1}},
        Words{{"<unk>", 1}}, Words{{"<s>", 1}}, Words{{"\xFF", 1}}, Words{{"a", -1}}}) {
    EXPECT_THROWS(make_tokenizer({.kind = "word", .words = bad}), kModelDamaged, "word tokenizer");
  }
  EXPECT_NO_THROW(make_tokenizer({.kind = "word", .marks = false, .words = {{"<s>", 1}}}));
  EXPECT_EQ(make_tokenizer({.kind = "word", .words = {}})->vocabulary_size(), 4);
}

// Words of any length and number: neither may take quadratic time.
TEST(WordTokenizer, TakesLongWordsAndManyWords) {
  const std::string huge(1 << 20, 'x');
  const auto tokenizer = learned(huge + " " + huge);
  EXPECT_EQ(tokenizer->decode(tokenizer->encode(huge)), huge);
  std::string many;
  for (int i = 0; i < 200000; ++i) many += "w" + std::to_string(i) + " ";
  const auto large = learned(many, {.min_count = 1});
  EXPECT_EQ(large->vocabulary_size(), 200004);
  EXPECT_EQ(tokenizer_data_from_text(to_text(large->data()), "t"), large->data());
}

}  // namespace
}  // namespace fovea
