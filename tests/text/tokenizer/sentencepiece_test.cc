// SPDX-License-Identifier: Apache-2.0
#include "fovea/text/sentencepiece/sentencepiece.h"

#include <gmock/gmock.h>

#include "fovea/text/utf8.h"
#include "tests/support/throws.h"
#include "tests/text/tokenizer/pieces.h"

namespace fovea {
namespace {

using testing::ElementsAre;

const std::string& text() {
  static const std::string all = lines_of_parts(300);
  return all;
}

std::string model(PieceAlgorithm kind = PieceAlgorithm::kUnigram, bool byte_fallback = false) {
  return piece_model_of(
      text(),
      {.kind = kind, .vocab_size = byte_fallback ? 300 : 40, .byte_fallback = byte_fallback});
}

TEST(PieceTokenizer, HasTheIdsOfItsModel) {
  for (const PieceAlgorithm kind : {PieceAlgorithm::kUnigram, PieceAlgorithm::kBpe}) {
    const std::string file = model(kind);
    const SentencePiece pieces(file);
    const auto tokenizer = piece_tokenizer(file);
    EXPECT_EQ(tokenizer->vocabulary_size(), pieces.size());
    EXPECT_EQ(tokenizer->special().begin, pieces.id_of("<s>"));
    EXPECT_EQ(tokenizer->special().end, pieces.id_of("</s>"));
    EXPECT_EQ(tokenizer->special().unknown, pieces.id_of("<unk>"));
    for (const std::string_view line : {"kato the ing", "", "  solu  月 ", "miren"}) {
      std::vector<token> expected;
      for (const EncodedPiece& piece : pieces.encode(line)) expected.push_back(piece.id);
      EXPECT_EQ(tokenizer->encode(line), expected) << line;
      EXPECT_EQ(tokenizer->decode(expected), pieces.decode(expected)) << line;
      EXPECT_LE(std::ssize(expected), tokenizer->token_count(line));
    }
  }
}

// Each line is cut by itself, and begins without the space that SentencePiece puts there.
TEST(PieceTokenizer, KeepsLines) {
  const auto tokenizer = piece_tokenizer(model());
  const token end = tokenizer->special().end;
  for (const std::string_view lines : {"the\n", "\n\nka to\nmi", "the ing\n月\n\n"}) {
    const std::vector<token> ids = tokenizer->encode(lines);
    EXPECT_EQ(std::count(ids.begin(), ids.end(), end),
              std::count(lines.begin(), lines.end(), '\n'));
    EXPECT_EQ(tokenizer->decode(ids), lines);
    StreamDecoder stream(*tokenizer);
    std::string streamed;
    for (const token id : ids) streamed += stream.push(id);
    EXPECT_EQ(streamed + stream.finish(), lines);
  }
  EXPECT_EQ(tokenizer->decode(tokenizer->encode(text())), text());
  EXPECT_TRUE(tokenizer->occurs_in_learned_text(end));
  EXPECT_FALSE(tokenizer->occurs_in_learned_text(tokenizer->special().begin));
  EXPECT_FALSE(tokenizer->occurs_in_learned_text(tokenizer->special().unknown));
}

TEST(PieceTokenizer, GoesOnBehindAPrompt) {
  const auto tokenizer = piece_tokenizer(model());
  const std::vector<token> ids = tokenizer->encode("ka to");
  const auto behind = [&](std::string_view before) {
    StreamDecoder stream(*tokenizer, before);
    std::string out;
    for (const token id : ids) out += stream.push(id);
    return out + stream.finish();
  };
  EXPECT_EQ(behind(""), "ka to");
  EXPECT_EQ(behind("the"), " ka to");
  EXPECT_EQ(behind("the "), "ka to");
  EXPECT_EQ(behind("the\n"), "ka to");
}

// A character that is spelled in bytes comes when it is whole.
TEST(PieceTokenizer, StreamsWholeCharacters) {
  const auto tokenizer = piece_tokenizer(model(PieceAlgorithm::kUnigram, true));
  const std::vector<token> ids = tokenizer->encode("ka 👩é");
  EXPECT_EQ(std::count(ids.begin(), ids.end(), tokenizer->special().unknown), 0);
  StreamDecoder stream(*tokenizer);
  std::string out;
  for (const token id : ids) {
    const std::string more = stream.push(id);
    EXPECT_FALSE(find_invalid_utf8(more));
    out += more;
  }
  EXPECT_EQ(out, "ka 👩é");
}

TEST(PieceTokenizer, CountsBytes) {
  const std::string file = model();
  const SentencePiece pieces(file);
  const auto tokenizer = piece_tokenizer(file);
  const auto bytes = tokenizer->bytes_predicted();
  EXPECT_EQ(bytes[static_cast<std::size_t>(tokenizer->special().end)], 1);
  EXPECT_EQ(bytes[static_cast<std::size_t>(tokenizer->special().unknown)], 0);
  EXPECT_EQ(bytes[static_cast<std::size_t>(pieces.id_of("月"))], 3);
  EXPECT_EQ(bytes[static_cast<std::size_t>(pieces.id_of("▁"))], 1);
}

TEST(PieceTokenizer, DrawsCutsOfTheirOwnForEachEpochAndText) {
  for (const PieceAlgorithm kind : {PieceAlgorithm::kUnigram, PieceAlgorithm::kBpe}) {
    const auto tokenizer = piece_tokenizer(model(kind));
    const auto drawn = [&](std::uint64_t epoch, std::uint64_t number, std::string_view what) {
      std::vector<token> ids;
      tokenizer->append_drawn(ids, what, "text",
                              {.alpha = 0.5, .seed = 1, .epoch = epoch, .number = number});
      EXPECT_EQ(tokenizer->decode(ids), what);
      return ids;
    };
    const std::string_view all = text();
    EXPECT_EQ(drawn(0, 0, all), drawn(0, 0, all));
    EXPECT_NE(drawn(0, 0, all), drawn(1, 0, all));
    EXPECT_NE(drawn(0, 0, all), tokenizer->encode(all));
    // Line 3 of a text draws what it draws alone.
    std::string_view rest = all;
    for (int line = 0; line < 3; ++line) rest.remove_prefix(rest.find('\n') + 1);
    const std::vector<token> tail = drawn(2, 3, rest), whole = drawn(2, 0, all);
    EXPECT_TRUE(std::equal(tail.rbegin(), tail.rend(), whole.rbegin()));
  }
}

TEST(PieceTokenizer, IsStoredWhole) {
  for (const bool marks : {true, false}) {
    const auto tokenizer = piece_tokenizer(model(), marks);
    EXPECT_EQ(tokenizer->special().begin == kNoToken, !marks);
    const TokenizerData data = tokenizer->data();
    const std::string stored = to_text(data);
    EXPECT_EQ(tokenizer_data_from_text(stored, "t"), data);
    EXPECT_EQ(make_tokenizer(data)->encode("kato"), tokenizer->encode("kato"));
  }
}

TEST(PieceTokenizer, BelievesNoFile) {
  const std::string stored = to_text(piece_tokenizer(model())->data());
  const auto read = [](std::string text) {
    return tokenizer_data_from_text(text, "m/tokenizer.txt");
  };
  const std::size_t line = stored.find('\n', stored.find("model ")) + 1;
  std::string damaged = stored;
  damaged[line] = '*';
  EXPECT_THROWS(read(damaged), kModelDamaged, "m/tokenizer.txt:4: expected 72 bytes in base64");
  damaged = stored;
  damaged[line] = damaged[line] == 'A' ? 'B' : 'A';
  EXPECT_THROWS(read(damaged), kModelDamaged, "checksum");
  EXPECT_THROWS(read(stored.substr(0, stored.size() / 2)), kModelDamaged, "m/tokenizer.txt:");
  TokenizerData data = piece_tokenizer(model())->data();
  data.model.resize(data.model.size() / 2);
  EXPECT_THROWS(make_tokenizer(data), kModelDamaged, "");
  EXPECT_THROWS(make_tokenizer({.kind = "sentencepiece", .lower = true}), kModelDamaged, "");
  EXPECT_THROWS(learn_pieces("", "", {}), kUsage, "--tokenizer-model is missing");
  EXPECT_THROWS(piece_tokenizer("no model"), kModelDamaged, "model");
}

TEST(PieceTokenizer, RefusesTextThatIsNotUtf8) {
  const auto tokenizer = piece_tokenizer(model());
  EXPECT_THROWS(tokenizer->encode("ka\n\xFF", "poem.txt"), kEncoding, "poem.txt:2:1");
}

}  // namespace
}  // namespace fovea
