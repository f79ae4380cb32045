// SPDX-License-Identifier: Apache-2.0
// sentencepiece_test.cc compares with SentencePiece.
#include <gtest/gtest.h>

#include <cmath>
#include <map>

#include "fovea/text/sentencepiece/cutter.h"
#include "tests/support/throws.h"
#include "tests/text/sentencepiece/proto_writer.h"

namespace fovea {
namespace {

struct Cutter {
  explicit Cutter(std::vector<ModelPiece> pieces)
      : model(read_piece_model(model_of(std::move(pieces), PieceAlgorithm::kBpe), "m")),
        normalizer(model, "m"),
        cutter(make_bpe_cutter(model, normalizer)) {}

  std::string cut(std::string_view text) const { return written(cutter->cut(text)); }
  static std::string written(const std::vector<CutPiece>& pieces) {
    std::string text;
    for (const CutPiece& piece : pieces) {
      text += text.empty() ? "" : " ";
      text += piece.text;
    }
    return text;
  }

  PieceModel model;
  PieceNormalizer normalizer;
  std::unique_ptr<PieceCutter> cutter;
};

using enum PieceType;
const std::vector<ModelPiece> kLetters{{"a", -9, kNormal}, {"b", -9, kNormal}, {"c", -9, kNormal}};

std::vector<ModelPiece> with(std::vector<ModelPiece> more) {
  more.insert(more.begin(), kLetters.begin(), kLetters.end());
  return more;
}

TEST(Bpe, JoinsTheHighestScoreFirstThenTheLeftmost) {
  const Cutter cutter(with({{"ab", -1, kNormal}, {"bc", 0, kNormal}, {"aa", -2, kNormal}}));
  EXPECT_EQ(cutter.cut("abc"), "a bc");
  EXPECT_EQ(cutter.cut("ab"), "ab");
  EXPECT_EQ(cutter.cut("aaa"), "aa a");
  EXPECT_EQ(cutter.cut("aaaa"), "aa aa");
  EXPECT_EQ(cutter.cut(""), "");
}

// "abc" is a piece, but neither "ab" nor "bc" is: nothing leads to it.
TEST(Bpe, OnlyJoinsNeighbours) {
  EXPECT_EQ(Cutter(with({{"abc", 0, kNormal}})).cut("abc"), "a b c");
  EXPECT_EQ(Cutter(with({{"abc", 0, kNormal}, {"bc", -1, kNormal}})).cut("abc"), "abc");
}

TEST(Bpe, UnusedPiecesAreCutAsTheyWereJoined) {
  const Cutter cutter(with({{"ab", -1, kUnused}, {"abc", -2, kUnused}, {"abca", -3, kNormal}}));
  EXPECT_EQ(cutter.cut("abc"), "a b c");
  EXPECT_EQ(cutter.cut("abca"), "abca");
}

TEST(Bpe, UserDefinedPiecesAreNeverJoined) {
  const Cutter cutter(with({{"bc", 0, kUserDefined}, {"abc", 0, kNormal}, {"ab", 0, kNormal}}));
  EXPECT_EQ(cutter.cut("abcab"), "a bc ab");
}

TEST(Bpe, CharactersWithoutAPieceAreUnknown) {
  const Cutter cutter(kLetters);
  EXPECT_EQ(cutter.cutter->cut("a月"), (std::vector<CutPiece>{{"a", 1}, {"月", 0}}));
}

// The definition: join one pair after another, looking at all of them each time.
std::string plain_cut(const PieceModel& model, std::string_view text) {
  std::vector<std::string> symbols;
  for (const char c : text) symbols.emplace_back(1, c);
  while (true) {
    const ModelPiece* best = nullptr;
    std::size_t at = 0;
    for (std::size_t i = 0; i + 1 < symbols.size(); ++i) {
      for (const ModelPiece& piece : model.pieces) {
        const bool joins = piece.type == kNormal && piece.text == symbols[i] + symbols[i + 1];
        if (!joins || (best != nullptr && piece.score <= best->score)) continue;
        best = &piece;
        at = i;
      }
    }
    if (best == nullptr) break;
    symbols[at] += symbols[at + 1];
    symbols.erase(symbols.begin() + static_cast<std::ptrdiff_t>(at) + 1);
  }
  std::string cut;
  for (const std::string& symbol : symbols) cut += (cut.empty() ? "" : " ") + symbol;
  return cut;
}

TEST(Bpe, IsTheDefinition) {
  Random random(1, RandomUse::kTest);
  const auto some = [&](index longest) {
    std::string text;
    for (index left = 1 + random.below(longest); left > 0; --left) text += "abc"[random.below(3)];
    return text;
  };
  for (int problem = 0; problem < 100; ++problem) {
    std::map<std::string, ModelPiece> pieces;
    for (const ModelPiece& letter : kLetters) pieces[letter.text] = letter;
    for (float rank = 0; rank < 20; ++rank) {
      const std::string text = some(4);
      if (text.size() > 1) pieces[text] = {text, -rank, kNormal};
    }
    std::vector<ModelPiece> all;
    for (const auto& [text, piece] : pieces) all.push_back(piece);
    const Cutter cutter(all);
    for (int n = 0; n < 20; ++n) {
      const std::string text = some(14);
      EXPECT_EQ(cutter.cut(text), plain_cut(cutter.model, text)) << text;
    }
  }
}

TEST(Bpe, DropoutLeavesOutMerges) {
  const Cutter cutter(with({{"ab", -1, kNormal}}));
  const auto share_joined = [&](double alpha) {
    int joined = 0;
    for (std::uint64_t n = 0; n < 2000; ++n) {
      Random random(3, RandomUse::kTest, n);
      joined += Cutter::written(cutter.cutter->sample("ab", {.alpha = alpha}, random)) == "ab";
    }
    return joined / 2000.0;
  };
  EXPECT_EQ(share_joined(0), 1);
  EXPECT_EQ(share_joined(1), 0);
  EXPECT_NEAR(share_joined(0.3), 0.7, 5 * std::sqrt(0.21 / 2000));
  EXPECT_THROWS(cutter.cutter->best("ab", 2), kOptionValue, "in one way");
}

}  // namespace
}  // namespace fovea
