// SPDX-License-Identifier: Apache-2.0
#include "fovea/text/sentencepiece/trainer.h"

#include <gtest/gtest.h>

#include "fovea/text/sentencepiece/sentencepiece.h"
#include "tests/support/draws.h"
#include "tests/support/throws.h"

namespace fovea {
namespace {

std::string some_text() {
  constexpr std::string_view kParts[] = {"ka", "to",  "mi",  "ren", "sol",
                                         "u",  "the", "ing", "月",  "亮"};
  Draws draws(1);
  std::string text;
  for (int line = 0; line < 300; ++line) {
    for (index left = 2 + draws.below(25); left > 0; --left) {
      text += kParts[draws.below(std::ssize(kParts))];
      text += draws.below(3) == 0 ? " " : "";
    }
    text += '\n';
  }
  return text;
}

TEST(PieceTrainer, LearnsWhatTheReaderReads) {
  const std::string text = some_text();
  for (const PieceAlgorithm kind : {PieceAlgorithm::kUnigram, PieceAlgorithm::kBpe}) {
    const PieceTraining training{.kind = kind,
                                 .vocab_size = 40,
                                 .user_symbols = {"<a,b>", "\"q\""},
                                 .control_symbols = {"<mask>"}};
    const TrainedPieces trained = train_pieces(text, training);
    EXPECT_EQ(trained.model, train_pieces(text, training).model);
    EXPECT_EQ(trained.lines, 300);
    const SentencePiece model(trained.model);
    EXPECT_EQ(model.size(), 40);
    EXPECT_EQ(model.model().algorithm, kind);
    EXPECT_EQ(model.decode(model.encode("the house <a,b>")), "the house <a,b>");
    EXPECT_EQ(model.model().pieces[static_cast<std::size_t>(model.id_of("<a,b>"))].type,
              PieceType::kUserDefined);
    EXPECT_EQ(model.model().pieces[static_cast<std::size_t>(model.id_of("<mask>"))].type,
              PieceType::kControl);
    EXPECT_NE(model.id_of("\"q\""), kNoToken);
  }
}

TEST(PieceTrainer, LongLinesAreLeftOutAndCounted) {
  const std::string text = some_text() + std::string(500, 'x') + "\n\n";
  const TrainedPieces trained = train_pieces(text, {.vocab_size = 30, .line_length = 200});
  EXPECT_EQ(trained.long_lines, 1);
  EXPECT_EQ(trained.lines, 300);
  EXPECT_EQ(SentencePiece(trained.model).id_of("x"), kNoToken);
}

TEST(PieceTrainer, SaysWhatDoesNotFit) {
  const std::string text = some_text();
  EXPECT_THROWS(train_pieces(text, {.vocab_size = 5000}), kOptionValue, "--vocab-size: 5000");
  EXPECT_THROWS(train_pieces(text, {.vocab_size = 8}), kOptionValue,
                "characters and symbols alone are");
  EXPECT_THROWS(train_pieces(text, {.vocab_size = 0}), kOptionValue, "from 8 to");
  EXPECT_THROWS(train_pieces(text, {.vocab_size = 200, .byte_fallback = true}), kOptionValue,
                "256");
  EXPECT_THROWS(train_pieces(text, {.coverage = 2}), kOptionValue, "--coverage");
  EXPECT_THROWS(train_pieces(text, {.user_symbols = {"a", "a"}}), kOptionValue, "--user-symbols");
  EXPECT_THROWS(train_pieces(text, {.user_symbols = {"<s>"}}), kOptionValue, "--user-symbols");
  EXPECT_THROWS(train_pieces(text, {.control_symbols = {""}}), kOptionValue, "--control-symbols");
  EXPECT_THROWS(train_pieces("\n\n", {.vocab_size = 20}), kInputTooSmall, "no line");
  const auto hint = error_of([&] { train_pieces(text, {.vocab_size = 5000}); })->hint();
  EXPECT_NE(hint.find("--vocab-size"), std::string::npos) << hint;
}

}  // namespace
}  // namespace fovea
