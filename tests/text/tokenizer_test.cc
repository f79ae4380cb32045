// SPDX-License-Identifier: Apache-2.0
#include "fovea/text/tokenizer.h"

#include <gmock/gmock.h>

#include <functional>
#include <string>
#include <vector>

#include "fovea/base/error.h"
#include "fovea/base/random.h"
#include "fovea/text/utf8.h"

namespace fovea {
namespace {

using namespace std::string_view_literals;
using testing::ElementsAre;
using testing::HasSubstr;

constexpr std::string_view kTrainingText = "床前明月光，疑是地上霜。\r\nthe quick brown fox\n";

std::unique_ptr<Tokenizer> learned(std::string_view kind, std::string_view text = kTrainingText) {
  return make_tokenizer(tokenizer_kind(kind).learn(text, "train.txt", {.min_count = 1}));
}

// The tokenizers that are learned from a text alone; sentencepiece_test.cc has those of subwords.
std::vector<TokenizerKind> learned_kinds() {
  std::vector<TokenizerKind> kinds(kTokenizers.begin(), kTokenizers.end());
  std::erase_if(kinds, [](const TokenizerKind& kind) { return kind.has_model; });
  EXPECT_EQ(kinds.size(), 3u);
  return kinds;
}

// The tokenizers that give back any text; words do not (tokenizer/word_test.cc).
std::vector<TokenizerKind> kinds_without_loss() {
  std::vector<TokenizerKind> kinds;
  for (const TokenizerKind& kind : learned_kinds()) {
    if (!kind.has_words) kinds.push_back(kind);
  }
  EXPECT_EQ(kinds.size(), 2u);
  return kinds;
}

ErrorCode code_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const Error& error) {
    return error.code();
  }
  ADD_FAILURE() << "expected an error";
  return ErrorCode::kInternal;
}

char32_t draw_character(Random& random) {
  const auto between = [&](char32_t low, char32_t high) {
    return low + static_cast<char32_t>(random.below(high - low + 1));
  };
  switch (random.below(8)) {
    case 0:
      return between(0, 0x7F);
    case 1:
      return between(0x80, 0x7FF);
    case 2:
      return between(0x4E00, 0x9FFF);  // CJK
    case 3:
      return between(0x20000, 0x2A6DF);  // CJK extension B
    case 4:
      return between(0x1F300, 0x1FAFF);  // emoji
    case 5:
      return between(0x200B, 0x202E);  // joiners and bidirectional controls
    case 6:
      return std::u32string_view(U"\0\r\n\uFEFF\uFFFE\U0010FFFF床t", 8)[random.below(8)];
    default:
      break;
  }
  char32_t c = between(0, kLastCodePoint);
  while (!is_scalar_value(c)) c = between(0, kLastCodePoint);
  return c;
}

std::string draw_text(Random& random) {
  std::string text;
  for (index i = random.below(40); i > 0; --i) append_utf8(text, draw_character(random));
  return text;
}

TEST(Tokenizer, GivesBackAnyText) {
  for (const TokenizerKind& kind : kinds_without_loss()) {
    SCOPED_TRACE(kind.name);
    const auto tokenizer = learned(kind.name);
    Random random(15, RandomUse::kTest);
    for (int round = 0; round < 100000; ++round) {
      const std::string text = draw_text(random);
      const auto ids = tokenizer->encode(text);
      ASSERT_EQ(tokenizer->decode(ids), text) << escape_text(text);
      for (const token id : ids) ASSERT_TRUE(id > kEndToken && id < tokenizer->vocabulary_size());
    }
  }
}

TEST(Tokenizer, GivesBackDifficultTexts) {
  for (const TokenizerKind& kind : kinds_without_loss()) {
    const auto tokenizer = learned(kind.name);
    for (const std::string_view text :
         {""sv, "\0"sv, "a\0b"sv, "\uFEFFstart"sv, "line\r\nline\r\n"sv, "\r\r\n\n"sv, "𠀀𪛖"sv,
          "👩\u200D👩\u200D👧\u200D👦"sv, "\u202Eabc\u202C"sv, "e\u0301 é"sv, "\U0010FFFF"sv}) {
      EXPECT_EQ(tokenizer->decode(tokenizer->encode(text)), text) << escape_text(text);
    }
  }
}

TEST(ByteTokenizer, KeepsAnyBytes) {
  std::string all;
  for (int b = 0; b < 256; ++b) all += static_cast<char>(b);
  const auto tokenizer = learned("byte", all);
  EXPECT_EQ(tokenizer->vocabulary_size(), 259);
  const auto ids = tokenizer->encode(all);
  for (int b = 0; b < 256; ++b) EXPECT_EQ(ids[static_cast<std::size_t>(b)], 3 + b);
  EXPECT_EQ(tokenizer->decode(ids), all);
}

TEST(CharTokenizer, NumbersCharactersByFrequencyThenCodePoint) {
  const auto tokenizer = learned("char", "bbaa中cc中ba");
  // a and b three times, c and 中 twice.
  EXPECT_EQ(tokenizer->data().characters, (std::vector<char32_t>{U'a', U'b', U'c', U'中'}));
  EXPECT_EQ(tokenizer->vocabulary_size(), 3 + 256 + 4);
  EXPECT_THAT(tokenizer->encode("中ab"), ElementsAre(262, 259, 260));
}

TEST(CharTokenizer, SpellsUnknownCharactersInBytes) {
  const auto tokenizer = learned("char", "ab");
  EXPECT_THAT(tokenizer->encode("aé"), ElementsAre(259, 3 + 0xC3, 3 + 0xA9));
}

TEST(Tokenizer, KnowsWhichTokensItsTextCanHold) {
  for (const TokenizerKind& kind : learned_kinds()) {
    const auto tokenizer = learned(kind.name);
    for (const token id : tokenizer->encode(kTrainingText)) {
      EXPECT_TRUE(tokenizer->occurs_in_learned_text(id)) << kind.name << " " << id;
    }
    for (const token id : {kPadToken, tokenizer->special().begin, tokenizer->special().end}) {
      EXPECT_GE(id, 0);
      EXPECT_FALSE(tokenizer->occurs_in_learned_text(id)) << kind.name << " " << id;
    }
  }
  const auto characters = learned("char", "ab");
  for (const token id : characters->encode("é")) {
    EXPECT_FALSE(characters->occurs_in_learned_text(id)) << "a byte";
  }
}

TEST(CharTokenizer, RefusesInvalidUtf8WithItsPlace) {
  const auto tokenizer = learned("char");
  try {
    tokenizer->encode("fine\nnot \xFF fine", "poem.txt");
    FAIL() << "expected an error";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kEncoding);
    EXPECT_STREQ(error.what(), "poem.txt:2:5: invalid UTF-8 at byte 9 (0xFF)");
    EXPECT_THAT(error.hint(), HasSubstr("byte tokenizer"));
  }
  EXPECT_EQ(code_of([] { learned("char", "\xC3\x28"); }), ErrorCode::kEncoding);
}

TEST(Tokenizer, SpecialTokensHaveNoBytes) {
  for (const TokenizerKind& kind : kinds_without_loss()) {
    const auto tokenizer = learned(kind.name);
    EXPECT_EQ(tokenizer->decode(std::vector{kPadToken, kBeginToken, byte_token('x'), kEndToken}),
              "x");
  }
}

TEST(Tokenizer, RefusesTokensOutsideTheVocabulary) {
  const auto tokenizer = learned("byte");
  EXPECT_EQ(code_of([&] { tokenizer->decode(std::vector<token>{259}); }), ErrorCode::kShape);
  EXPECT_EQ(code_of([&] { tokenizer->decode(std::vector<token>{-1}); }), ErrorCode::kShape);
}

TEST(Tokenizer, CountsTheBytesThatTokensPredict) {
  const auto tokenizer = learned("char", kTrainingText);
  const auto bytes = tokenizer->bytes_predicted();
  ASSERT_EQ(static_cast<index>(bytes.size()), tokenizer->vocabulary_size());
  EXPECT_EQ(bytes[kPadToken], 0);
  EXPECT_EQ(bytes[kBeginToken], 0);
  EXPECT_EQ(bytes[kEndToken], 1);
  constexpr std::string_view text = "床前 é 😀 fox";
  index total = 0;
  for (const token id : tokenizer->encode(text)) total += bytes[static_cast<std::size_t>(id)];
  EXPECT_EQ(total, static_cast<index>(text.size()));
}

TEST(StreamDecoder, EmitsWholeCharactersOnly) {
  const auto tokenizer = learned("byte");
  StreamDecoder stream(*tokenizer);
  std::string out;
  for (const token id : tokenizer->encode("a床😀")) {
    const std::string piece = stream.push(id);
    EXPECT_FALSE(find_invalid_utf8(piece));
    out += piece;
  }
  EXPECT_EQ(out, "a床😀");
  EXPECT_EQ(stream.finish(), "");
}

TEST(StreamDecoder, RepairsWhatIsNoText) {
  const auto tokenizer = learned("byte");
  StreamDecoder stream(*tokenizer);
  EXPECT_EQ(stream.push(byte_token('\xE5')), "");
  EXPECT_EQ(stream.push(byte_token('a')), "\uFFFDa");
  EXPECT_EQ(stream.push(byte_token('\xFF')), "\uFFFD");
  EXPECT_EQ(stream.push(byte_token('\xF0')), "");
  EXPECT_EQ(stream.push(byte_token('\x9F')), "");
  EXPECT_EQ(stream.finish(), "\uFFFD");
  EXPECT_EQ(stream.finish(), "");
}

// Whatever a model writes, the stream is UTF-8, and equal to the text where the bytes are text.
TEST(StreamDecoder, IsAlwaysUtf8) {
  const auto tokenizer = learned("char");
  Random random(3, RandomUse::kTest);
  for (int round = 0; round < 2000; ++round) {
    StreamDecoder stream(*tokenizer);
    std::vector<token> ids;
    std::string out;
    for (index i = random.below(30); i > 0; --i) {
      ids.push_back(static_cast<token>(random.below(tokenizer->vocabulary_size())));
      const std::string piece = stream.push(ids.back());
      ASSERT_FALSE(find_invalid_utf8(piece));
      out += piece;
    }
    out += stream.finish();
    const std::string bytes = tokenizer->decode(ids);
    ASSERT_FALSE(find_invalid_utf8(out));
    if (!find_invalid_utf8(bytes)) {
      ASSERT_EQ(out, bytes);
    }
  }
}

TEST(Tokenizer, HasMarksUnlessToldNot) {
  for (const TokenizerKind& kind : learned_kinds()) {
    const auto with = make_tokenizer(kind.learn(kTrainingText, "t", {.min_count = 1}));
    const auto without =
        make_tokenizer(kind.learn(kTrainingText, "t", {.marks = false, .min_count = 1}));
    EXPECT_NE(with->special().begin, kNoToken) << kind.name;
    EXPECT_NE(with->special().end, kNoToken);
    EXPECT_EQ(without->special().begin, kNoToken);
    EXPECT_EQ(without->special().end, kNoToken);
    EXPECT_EQ(with->decode(std::vector{with->special().begin, with->special().end}), "");
    // Only words have no ids to spare.
    EXPECT_EQ(with->vocabulary_size() - without->vocabulary_size(), kind.has_words ? 2 : 0);
    for (const Tokenizer* tokenizer : {with.get(), without.get()}) {
      const TokenizerData data = tokenizer->data();
      EXPECT_EQ(tokenizer_data_from_text(to_text(data), "t"), data);
      EXPECT_EQ(make_tokenizer(data)->data(), data);
    }
  }
}

TEST(CharTokenizer, CanPutTextIntoLowerCase) {
  const auto tokenizer =
      make_tokenizer(tokenizer_kind("char").learn("Ab \u00C9b", "t", {.lower = true}));
  EXPECT_EQ(tokenizer->data().characters, (std::vector<char32_t>{U'b', U' ', U'a', 0xE9}));
  EXPECT_EQ(tokenizer->decode(tokenizer->encode("AB \u00C9 \u0416")), "ab \u00E9 \u0436");
  EXPECT_EQ(tokenizer_data_from_text(to_text(tokenizer->data()), "t"), tokenizer->data());
}

TEST(TokenizerTable, NamesEachKindOnce) {
  for (const TokenizerKind& kind : learned_kinds()) {
    EXPECT_EQ(tokenizer_kind(kind.name).learn, kind.learn);
    EXPECT_EQ(learned(kind.name)->data().kind, kind.name);
  }
  try {
    tokenizer_kind("subword");
    FAIL() << "expected an error";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kOptionValue);
    EXPECT_STREQ(error.what(),
                 "--tokenizer: expected one of: byte, char, word, sentencepiece; got 'subword'");
  }
}

TEST(TokenizerTable, TrustsNoData) {
  EXPECT_EQ(code_of([] { make_tokenizer({"subword", {}}); }), ErrorCode::kModelDamaged);
  for (const std::string kind : {"byte", "char"}) {
    EXPECT_EQ(code_of([&] {
                make_tokenizer({.kind = kind, .words = {{"a", 1}}});
              }),
              ErrorCode::kModelDamaged);
  }
  EXPECT_EQ(code_of([] { make_tokenizer({.kind = "byte", .lower = true}); }),
            ErrorCode::kModelDamaged);
  EXPECT_EQ(code_of([] { make_tokenizer({.kind = "word", .characters = {U'a'}}); }),
            ErrorCode::kModelDamaged);
  EXPECT_EQ(code_of([] { make_tokenizer({"byte", {U'a'}}); }), ErrorCode::kModelDamaged);
  EXPECT_EQ(code_of([] {
              make_tokenizer({"char", {U'a', U'b', U'a'}});
            }),
            ErrorCode::kModelDamaged);
  EXPECT_EQ(code_of([] { make_tokenizer({"char", {0xD800}}); }), ErrorCode::kModelDamaged);
  EXPECT_EQ(code_of([] { make_tokenizer({"char", {0x110000}}); }), ErrorCode::kModelDamaged);
}

}  // namespace
}  // namespace fovea
