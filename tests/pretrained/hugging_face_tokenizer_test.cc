// SPDX-License-Identifier: Apache-2.0
#include "fovea/pretrained/hugging_face_tokenizer.h"

#include <gmock/gmock.h>

#include <set>

#include "fovea/text/sentencepiece/piece_model.h"
#include "fovea/text/sentencepiece/trainer.h"
#include "fovea/text/utf8.h"
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

// The model of a text that repeats words, so that there is something to join.
PieceTraining small_pieces(PieceAlgorithm kind) {
  PieceTraining training;
  training.kind = kind;
  training.vocab_size = kind == PieceAlgorithm::kBpe ? 40 : 23;
  return training;
}

std::string repeated_text() {
  std::string text;
  for (int n = 0; n < 200; ++n) text += "the weather of the other father\nlow lower lowest\n";
  return text;
}

TEST(HuggingFaceTokenizer, EveryPieceOfBpeHasAMergeThatMakesIt) {
  const std::string model = train_pieces(repeated_text(), small_pieces(PieceAlgorithm::kBpe)).model;
  const auto tokenizer = learned(kPieceKind, "", {.model = model});
  const HuggingFaceTokenizer form = hugging_face_tokenizer(*tokenizer, false);
  std::set<std::string> made;
  for (const Json& pair : form.tokenizer.at("model").at("merges").array()) {
    made.insert(pair.array().at(0).text() + pair.array().at(1).text());
  }
  std::size_t joined = 0;
  for (const auto& [text, id] : form.tokenizer.at("model").at("vocab").object()) {
    if (text.starts_with('<') || count_characters(text) < 2) continue;
    EXPECT_TRUE(made.contains(text)) << text;
    ++joined;
  }
  EXPECT_EQ(made.size(), joined);
  EXPECT_GT(joined, 10U);
}

TEST(HuggingFaceTokenizer, PiecesOfUnigramModelsKeepIdsAndScores) {
  const std::string file =
      train_pieces(repeated_text(), small_pieces(PieceAlgorithm::kUnigram)).model;
  const PieceModel model = read_piece_model(file, "model");
  const auto tokenizer = learned(kPieceKind, "", {.model = file});
  const HuggingFaceTokenizer form = hugging_face_tokenizer(*tokenizer, true);
  const Json::Array& vocabulary = form.tokenizer.at("model").at("vocab").array();
  ASSERT_EQ(vocabulary.size(), model.pieces.size());
  for (std::size_t id = 0; id < vocabulary.size(); ++id) {
    EXPECT_EQ(vocabulary[id].array().at(0).text(), model.pieces[id].text);
    EXPECT_EQ(vocabulary[id].array().at(1).number(), double{model.pieces[id].score});
  }
  EXPECT_EQ(Json(form.ids).at("eos_token_id").whole(), model.end);
}

TEST(HuggingFaceTokenizer, PiecesWithSymbolsOfTheirOwnAreRefused) {
  PieceTraining training = small_pieces(PieceAlgorithm::kUnigram);
  training.user_symbols = {"<2en>"};
  const auto tokenizer =
      learned(kPieceKind, "", {.model = train_pieces(repeated_text(), training).model});
  EXPECT_THROWS(hugging_face_tokenizer(*tokenizer, false), kModelWrongKind, "--user-symbols");
}

TEST(HuggingFaceTokenizer, WordsThatEndAtPunctuationAreRefused) {
  const auto tokenizer = learned("word", "a b. a b.", {.split = WordSplit::kPunctuation});
  EXPECT_THROWS(hugging_face_tokenizer(*tokenizer, false), kModelWrongKind, "punctuation");
}

}  // namespace
}  // namespace fovea
