// SPDX-License-Identifier: Apache-2.0
// BERT's way to write and cut a text. What is expected is what `tokenizers` 0.23 gives; that was
// compared on 140,000 strings of all scripts, without a difference.
#include "fovea/text/tokenizer/wordpiece.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "fovea/base/error.h"

namespace fovea {
namespace {

WordPieceModel small_model() {
  WordPieceModel model;
  model.names = {"[PAD]", "[UNK]", "[CLS]", "[SEP]", "un", "##aff", "##able", "able",
                 "a",     "##b",   "##c",   "!",     "中", "cafe",  "b c"};
  model.added = {{.text = "[SEP]", .id = 3},
                 {.text = "b c", .id = 14, .is_mark = false, .normalized = true}};
  return model;
}

std::vector<token> ids_of(const WordPiece& pieces, std::string_view text) {
  std::vector<token> ids;
  pieces.encode(ids, text);
  return ids;
}

using Ids = std::vector<token>;

TEST(BertNormalizer, WritesATextAsTheReferenceDoes) {
  const auto written = [](std::string_view text, BertNormalizer rules = {}) {
    return normalized(text, rules);
  };
  EXPECT_EQ(written("Caf\u00e9 \u00c5ngstr\u00f6m"), "cafe angstrom");
  EXPECT_EQ(written("\u0130\u03a3"), "i\u03c3");  // the dot is a mark; no final sigma
  EXPECT_EQ(written("a\tb\u3000c\u200bd\xEF\xBF\xBD"), "a b cd");
  EXPECT_EQ(written(std::string_view("a\0b", 3)), "ab");
  EXPECT_EQ(written("x\u4e2dy"), "x \u4e2d y");
  EXPECT_EQ(written("\uac00"), "\u1100\u1161");  // a syllable of Hangul
  EXPECT_EQ(written("a\xff z"), "a z");
  // Marks that are kept are put into the order of their classes: 224 before 226.
  EXPECT_EQ(written("\U0001D16D\u302e"), "\u302e\U0001D16D");
  // Marks that came after Unicode 8 are no marks to it.
  EXPECT_EQ(written("a\u0300\u1abf"), "a\u1abf");
  const BertNormalizer cased{.accents = false, .lower = false};
  EXPECT_EQ(written("Caf\u00e9", cased), "Caf\u00e9");
  const BertNormalizer nothing{false, false, false, false};
  EXPECT_EQ(written("A\t\u4e2d\u00e9", nothing), "A\t\u4e2d\u00e9");
}

TEST(WordPiece, CutsTheLongestPiecesFromTheFrontOn) {
  const WordPiece pieces(small_model());
  EXPECT_EQ(ids_of(pieces, "unaffable Able"), (Ids{4, 5, 6, 7}));
  EXPECT_EQ(ids_of(pieces, "unaffablex"), (Ids{1}));
  EXPECT_EQ(ids_of(pieces, "abc!!\u4e2da caf\u00e9"), (Ids{8, 9, 10, 11, 11, 12, 8, 13}));
  EXPECT_EQ(ids_of(pieces, ""), Ids{});
  EXPECT_EQ(ids_of(pieces, " \t\u200b"), Ids{});
}

TEST(WordPiece, AWordOfTooManyCharactersIsUnknown) {
  WordPieceModel model = small_model();
  model.longest_word = 4;
  const WordPiece pieces(std::move(model));
  EXPECT_EQ(ids_of(pieces, "abbb"), (Ids{8, 9, 9, 9}));
  EXPECT_EQ(ids_of(pieces, "abbbb"), (Ids{1}));
}

TEST(WordPiece, AddedTokensAreWholeWhereverTheyStand) {
  const WordPiece pieces(small_model());
  EXPECT_EQ(ids_of(pieces, "a[SEP]a"), (Ids{8, 3, 8}));
  EXPECT_EQ(ids_of(pieces, "[SEP][SEP]"), (Ids{3, 3}));
  EXPECT_EQ(ids_of(pieces, "a B C a"), (Ids{8, 14, 8}));  // it is looked for in the written text
  WordPieceModel model = small_model();
  model.added[0].takes_left = model.added[0].takes_right = true;
  const WordPiece wide(std::move(model));
  EXPECT_EQ(ids_of(wide, "a  [SEP] [SEP] \u3000a"), (Ids{8, 3, 3, 8}));
}

TEST(WordPiece, ManyAddedTokensInALongTextTakeLinearTime) {
  WordPieceModel model = small_model();
  for (int n = 0; n < 200; ++n) {
    model.names.push_back("<" + std::to_string(n) + ">");
    model.added.push_back(
        {.text = model.names.back(), .id = static_cast<token>(model.names.size()) - 1});
  }
  const WordPiece pieces(std::move(model));
  std::string text;
  for (int n = 0; n < 50'000; ++n) text += "[SEP]";  // hours, if each looked for all behind it
  EXPECT_EQ(ids_of(pieces, text).size(), 50'000U);
}

TEST(WordPiece, JoinsPieces) {
  const WordPiece pieces(small_model());
  EXPECT_EQ(pieces.decode(Ids{4, 5, 6, 11, 3, 8}), "unaffable! a");
  EXPECT_EQ(pieces.decode(Ids{6, 8}), "##able a");
  EXPECT_THROW(pieces.decode(Ids{15}), Error);
}

TEST(WordPiece, AVocabularyThatContradictsItselfIsAnError) {
  const auto refuses = [](auto change) {
    WordPieceModel model = small_model();
    change(model);
    try {
      WordPiece{std::move(model)};
    } catch (const Error& error) {
      return error.code() == ErrorCode::kModelDamaged;
    }
    return false;
  };
  EXPECT_FALSE(refuses([](WordPieceModel&) {}));
  EXPECT_TRUE(refuses([](WordPieceModel& m) { m.names.push_back("a"); }));
  EXPECT_TRUE(refuses([](WordPieceModel& m) { m.names.push_back("\xff"); }));
  EXPECT_TRUE(refuses([](WordPieceModel& m) { m.unknown = "<unk>"; }));
  EXPECT_TRUE(refuses([](WordPieceModel& m) { m.added[0].id = 4; }));
  EXPECT_TRUE(refuses([](WordPieceModel& m) { m.added[0].id = 99; }));
  EXPECT_TRUE(refuses([](WordPieceModel& m) { m.marks.before = {-1}; }));
  EXPECT_TRUE(refuses([](WordPieceModel& m) { m.marks.after = {15}; }));
  EXPECT_TRUE(refuses([](WordPieceModel& m) { m.marks.between = {99}; }));
}

}  // namespace
}  // namespace fovea
