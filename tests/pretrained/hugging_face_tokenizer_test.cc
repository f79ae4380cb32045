// SPDX-License-Identifier: Apache-2.0
#include "fovea/pretrained/hugging_face_tokenizer.h"

#include <gmock/gmock.h>

#include "tests/support/throws.h"

namespace fovea {
namespace {

std::unique_ptr<Tokenizer> learned(std::string_view kind, std::string_view text,
                                   const LearnOptions& options = {}) {
  return make_tokenizer(tokenizer_kind(kind).learn(text, "text", options));
}

token id_of(const HuggingFaceTokenizer& form, std::string_view name) {
  return static_cast<token>(form.tokenizer.at("model").at("vocab").at(name).whole());
}

// The characters that GPT-2's encoder has for these bytes.
TEST(HuggingFaceTokenizer, BytesAreNamedAsInGpt2) {
  const HuggingFaceTokenizer form = hugging_face_tokenizer(*learned("byte", ""), false);
  for (const auto& [byte, name] : {std::pair{'A', "A"},
                                   {' ', "Ġ"},
                                   {'\n', "Ċ"},
                                   {'\0', "Ā"},
                                   {'\x7F', "ġ"},
                                   {'\xA0', "ł"},
                                   {'\xAD', "Ń"},
                                   {'\xFF', "ÿ"}}) {
    EXPECT_EQ(id_of(form, name), byte_token(byte)) << name;
  }
  EXPECT_EQ(form.tokenizer.at("model").at("vocab").object().size(), 259U);
}

TEST(HuggingFaceTokenizer, EveryIdHasOneName) {
  for (const char* kind : {"byte", "char", "word"}) {
    const auto tokenizer = learned(kind, "the cat and the dog <0x41> the cat dog");
    const HuggingFaceTokenizer form = hugging_face_tokenizer(*tokenizer, false);
    std::vector<index> ids;
    for (const auto& [name, id] : form.tokenizer.at("model").at("vocab").object()) {
      ids.push_back(id.whole());
    }
    std::ranges::sort(ids);
    ASSERT_EQ(std::ssize(ids), tokenizer->vocabulary_size()) << kind;
    for (std::size_t n = 0; n < ids.size(); ++n) EXPECT_EQ(ids[n], static_cast<index>(n));
  }
}

TEST(HuggingFaceTokenizer, ALineBeginsWithItsMarkWhereTheModelKnowsLines) {
  const auto tokenizer = learned("char", "abc");
  EXPECT_TRUE(hugging_face_tokenizer(*tokenizer, false).tokenizer.at("post_processor").is_null());
  const HuggingFaceTokenizer form = hugging_face_tokenizer(*tokenizer, true);
  EXPECT_EQ(form.tokenizer.at("post_processor")
                .at("single")
                .array()
                .at(0)
                .at("SpecialToken")
                .at("id")
                .text(),
            "<|begin|>");
  const auto without = learned("char", "abc", {.marks = false});
  EXPECT_TRUE(hugging_face_tokenizer(*without, true).tokenizer.at("post_processor").is_null());
}

TEST(HuggingFaceTokenizer, WordsThatEndAtPunctuationAreRefused) {
  const auto tokenizer = learned("word", "a b. a b.", {.split = WordSplit::kPunctuation});
  EXPECT_THROWS(hugging_face_tokenizer(*tokenizer, false), kModelWrongKind, "punctuation");
}

}  // namespace
}  // namespace fovea
