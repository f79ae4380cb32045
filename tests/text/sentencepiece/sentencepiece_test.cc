// SPDX-License-Identifier: Apache-2.0
#include "fovea/text/sentencepiece/sentencepiece.h"

#include <fmt/core.h>
#include <gmock/gmock.h>

#include "tests/support/draws.h"
#include "tests/support/throws.h"
#include "tests/text/sentencepiece/pieces_golden.h"
#include "tests/text/sentencepiece/proto_writer.h"

namespace fovea {
namespace {

using enum PieceType;

std::string line_of(int seed) {
  Draws draws(static_cast<std::uint64_t>(seed));
  std::string line;
  for (index left = draws.below(13); left > 0; --left) {
    line += golden::kPieceWords[draws.below(std::ssize(golden::kPieceWords))];
    line += draws.below(5) == 0 ? "" : " ";
  }
  return line;
}

constexpr std::uint64_t kFnv = 0xCBF29CE484222325u;

std::uint64_t mixed(std::uint64_t value, std::string_view bytes) {
  for (const char byte : bytes) {
    value = (value ^ static_cast<unsigned char>(byte)) * 0x100000001B3u;
  }
  return value;
}

std::vector<token> ids_of(const std::vector<EncodedPiece>& pieces) {
  std::vector<token> ids;
  for (const EncodedPiece& piece : pieces) ids.push_back(piece.id);
  return ids;
}

std::uint64_t hash_of(const SentencePiece& model, const std::string& line) {
  const std::vector<EncodedPiece> pieces = model.encode(line);
  std::uint64_t value = kFnv;
  for (const EncodedPiece& piece : pieces) {
    value = mixed(value, fmt::format("{} {} ", piece.id, piece.text));
  }
  value = mixed(value, model.decode(ids_of(pieces)) + "|");
  return mixed(value, model.decode(pieces) + "|");
}

// Ids, pieces and decoded text of 1,000 lines for each model.
TEST(SentencePiece, IsSentencePiece) {
  for (const golden::PieceCase& of : golden::kPieceCases) {
    const SentencePiece model(of.model, of.name);
    for (int first = 0; first < golden::kPieceLines; first += golden::kLinesOfAHash) {
      std::uint64_t value = kFnv;
      for (int seed = first; seed < first + golden::kLinesOfAHash; ++seed) {
        const std::uint64_t line = hash_of(model, line_of(seed));
        for (int shift = 0; shift < 64; shift += 8) {
          value = mixed(value, std::string(1, static_cast<char>(line >> shift)));
        }
      }
      EXPECT_EQ(value, of.hashes[first / golden::kLinesOfAHash]) << of.name << ", from " << first;
    }
  }
}

// Every byte of a model that SentencePiece has written, changed: it is refused, or it cuts.
TEST(SentencePiece, DamagedModelsAreRefusedOrSafe) {
  for (const golden::PieceCase& of : golden::kPieceCases) {
    std::string bytes(of.model);
    int refused = 0;
    for (std::size_t at = 0; at < bytes.size(); at += 7) {
      const char kept = bytes[at];
      bytes[at] = static_cast<char>(kept ^ (1 << (at % 8)));
      refused += error_of([&] {
        const SentencePiece model(bytes, "m");
        const auto pieces = model.encode("the cats of 月亮 <tag> \xEF\xAC\x81");
        model.decode(ids_of(pieces));
      })
                     ? 1
                     : 0;
      bytes[at] = kept;
    }
    EXPECT_GT(refused, 20) << of.name;
  }
}

const std::vector<ModelPiece> kPieces{
    {"<s>", 0, kControl}, {"▁a", -1, kNormal}, {"b", -1, kNormal}, {"▁", -2, kNormal}};

SentencePiece small(const std::string& more = "") {
  return SentencePiece(model_of(kPieces, PieceAlgorithm::kUnigram, more));
}

TEST(SentencePiece, UnknownCharactersInARowAreOnePiece) {
  const SentencePiece model = small();
  EXPECT_THAT(model.encode("ab月亮b"),
              testing::ElementsAre(EncodedPiece{"▁a", 2}, EncodedPiece{"b", 3},
                                   EncodedPiece{"月亮", 0}, EncodedPiece{"b", 3}));
  EXPECT_EQ(model.decode(model.encode("ab月亮b")), "ab月亮b");
  EXPECT_EQ(model.decode(ids_of(model.encode("ab月亮b"))), "ab ⁇ b");
  EXPECT_EQ(model.id_of("<s>"), 1);
  EXPECT_EQ(model.id_of("月"), kNoToken);
}

TEST(SentencePiece, BytesSpellUnknownCharacters) {
  std::vector<ModelPiece> pieces = kPieces;
  for (int byte = 0; byte < 256; ++byte) {
    pieces.push_back({fmt::format("<0x{:02X}>", byte), 0, kByte});
  }
  const SentencePiece model(
      model_of(pieces, PieceAlgorithm::kUnigram,
               ProtoWriter().bytes(2, ProtoWriter().number(35, 1).text()).text()));
  const std::vector<EncodedPiece> encoded = model.encode("a月");
  ASSERT_EQ(encoded.size(), 4u);
  EXPECT_EQ(encoded[1].text, "<0xE6>");
  EXPECT_EQ(model.decode(encoded), "a月");
  std::vector<token> ids = ids_of(encoded);
  ids.pop_back();  // the character is not finished
  EXPECT_EQ(model.decode(ids), "a\xEF\xBF\xBD\xEF\xBF\xBD");
}

TEST(SentencePiece, DecodesNoIdBeyondTheVocabulary) {
  const SentencePiece model = small();
  EXPECT_EQ(model.decode(std::vector<token>{1, 2, 3, 2}), "ab a");
  EXPECT_THROWS(model.decode(std::vector<token>{5}), kShape,
                "token 5 is not in the vocabulary of 5");
  EXPECT_THROWS(model.decode(std::vector<token>{-1}), kShape, "token -1");
}

TEST(SentencePiece, SamplesAreCutsOfTheSameText) {
  for (const golden::PieceCase& of : golden::kPieceCases) {
    const SentencePiece model(of.model, of.name);
    const std::string line = "the cats sat on housing";
    int others = 0;
    for (std::uint64_t n = 0; n < 50; ++n) {
      Random random(1, RandomUse::kTest, n), again(1, RandomUse::kTest, n);
      const std::vector<EncodedPiece> cut = model.sample(line, {.alpha = 0.3}, random);
      EXPECT_EQ(cut, model.sample(line, {.alpha = 0.3}, again));
      EXPECT_EQ(model.decode(cut), model.decode(model.encode(line)));
      others += cut != model.encode(line) ? 1 : 0;
    }
    EXPECT_GT(others, 10) << of.name;
  }
  EXPECT_EQ(small().best("ab", 5).front(), small().encode("ab"));
}

}  // namespace
}  // namespace fovea
