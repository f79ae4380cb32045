// SPDX-License-Identifier: Apache-2.0
#include "fovea/text/sentencepiece/piece_model.h"

#include <fmt/core.h>
#include <gtest/gtest.h>

#include <limits>

#include "tests/support/throws.h"
#include "tests/support/time_taken.h"
#include "tests/text/sentencepiece/proto_writer.h"

namespace fovea {
namespace {

using enum PieceType;

const ModelPiece kUnk{"<unk>", 0, kUnknown}, kA{"a", -1, kNormal};

PieceModel read(const std::vector<ModelPiece>& pieces, const std::string& more = "") {
  return read_piece_model(model_bytes(pieces, PieceAlgorithm::kUnigram, more), "m.model");
}

// TrainerSpec as a further field: protocol buffers join messages that come twice.
std::string trainer(const ProtoWriter& fields) {
  return ProtoWriter().bytes(2, fields.text()).text();
}

std::vector<ModelPiece> with_bytes(int count) {
  std::vector<ModelPiece> pieces{kUnk, kA};
  for (int byte = 0; byte < count; ++byte) {
    pieces.push_back({fmt::format("<0x{:02X}>", byte), 0, kByte});
  }
  return pieces;
}

TEST(PieceModel, ReadsPiecesAndSettings) {
  const PieceModel model =
      read({kUnk, {"<s>", 0, kControl}, {"</s>", 0, kControl}, kA, {"b", -2.5f, kUserDefined}},
           trainer(ProtoWriter().number(3, 2).number(24, 1).bytes(44, "?")) + plain_spaces() +
               ProtoWriter().bytes(9, "unknown fields are skipped").text());
  ASSERT_EQ(model.pieces.size(), 5u);
  EXPECT_EQ(model.pieces[4].text, "b");
  EXPECT_EQ(model.pieces[4].score, -2.5f);
  EXPECT_EQ(model.pieces[4].type, kUserDefined);
  EXPECT_EQ(model.unknown, 0);
  EXPECT_EQ(model.begin, 1);
  EXPECT_EQ(model.end, 2);
  EXPECT_EQ(model.pad, kNoToken);
  EXPECT_EQ(model.algorithm, PieceAlgorithm::kBpe);
  EXPECT_TRUE(model.space_is_suffix);
  EXPECT_EQ(model.unknown_surface, "?");
  EXPECT_FALSE(model.normalizer.add_dummy_prefix);
  EXPECT_FALSE(model.normalizer.escape_whitespaces);
}

TEST(PieceModel, DefaultsAreThoseOfTheFormat) {
  const PieceModel model = read_piece_model(ProtoWriter()
                                                .bytes(1, piece_bytes("<unk>", 0, kUnknown))
                                                .bytes(1, ProtoWriter().bytes(1, "a").text())
                                                .text(),
                                            "m");
  EXPECT_EQ(model.pieces[1].type, kNormal);
  EXPECT_EQ(model.algorithm, PieceAlgorithm::kUnigram);
  EXPECT_TRUE(model.normalizer.add_dummy_prefix && model.normalizer.remove_extra_whitespaces &&
              model.normalizer.escape_whitespaces);
  EXPECT_EQ(model.unknown_surface, " \xE2\x81\x87 ");
}

TEST(PieceModel, RefusesWhatContradictsItself) {
  EXPECT_THROWS(read_piece_model("", "m"), kModelDamaged, "m: it has no pieces");
  EXPECT_THROWS(read_piece_model("{\"a\": 1}", "m"), kModelDamaged, "m: byte");
  EXPECT_THROWS(read({kA}), kModelDamaged, "no unknown piece");
  EXPECT_THROWS(read({kUnk}), kModelDamaged, "no pieces of text");
  EXPECT_THROWS(read({kUnk, kA, {"<u>", 0, kUnknown}}), kModelDamaged, "two unknown pieces");
  EXPECT_THROWS(read({kUnk, kA, kA}), kModelDamaged, "'a' is there twice");
  EXPECT_THROWS(read({kUnk, {"", 0, kNormal}}), kModelDamaged, "a piece is empty");
  EXPECT_THROWS(read({kUnk, {"\xFF", 0, kNormal}}), kModelDamaged, "no text");
  EXPECT_THROWS(read({kUnk, {std::string("a\0b", 3), 0, kNormal}}), kModelDamaged, "no text");
  EXPECT_THROWS(read({kUnk, {std::string(2049, 'a'), 0, kNormal}}), kModelDamaged,
                "has 2049 bytes; at most 2048 are read");
  EXPECT_EQ(read({kUnk, {std::string(2048, 'a'), 0, kNormal}}).pieces.size(), 2u);
  EXPECT_THROWS(read({kUnk, kA}, trainer(ProtoWriter().bytes(44, std::string(2049, '?')))),
                kModelDamaged, "the unknown surface");
  EXPECT_THROWS(read({kUnk, {"a", std::numeric_limits<float>::quiet_NaN(), kNormal}}),
                kModelDamaged, "the score nan");
  EXPECT_THROWS(read({kUnk, {"a", std::numeric_limits<float>::infinity(), kNormal}}), kModelDamaged,
                "the score inf");
  EXPECT_THROWS(read({kUnk, {"a", 0, static_cast<PieceType>(7)}}), kModelDamaged, "type 7");
}

// Settings that come again are joined with those before, which are not copied for that.
TEST(PieceModel, SettingsThatComeAgainTakeNoTime) {
  const std::string again = ProtoWriter().bytes(3, "").text();
  const auto read_again = [&](index times) {
    std::string more = plain_spaces(std::string(1 << 20, 'x'));
    for (index n = 0; n < times; ++n) more += again;
    EXPECT_EQ(read({kUnk, kA}, more).normalizer.charsmap.size(), 1u << 20);
  };
  EXPECT_LT(seconds_of([&] { read_again(1000); }), 0.02 + 30 * seconds_of([&] { read_again(1); }));
}

// A mark and a text may have one name.
TEST(PieceModel, MarksAndTextsAreApart) {
  EXPECT_EQ(read({kUnk, kA, {"a", 0, kControl}, {"<unk>", -1, kNormal}}).pieces.size(), 4u);
  EXPECT_THROWS(read({kUnk, kA, {"<unk>", 0, kControl}}), kModelDamaged, "is there twice");
}

TEST(PieceModel, BytesAreAllThereOrNone) {
  const std::string falls_back = trainer(ProtoWriter().number(35, 1));
  EXPECT_TRUE(read(with_bytes(256), falls_back).byte_fallback);
  EXPECT_THROWS(read(with_bytes(255), falls_back), kModelDamaged, "has 255 of 256");
  EXPECT_THROWS(read(with_bytes(1)), kModelDamaged, "bytes are not used");
  EXPECT_THROWS(read({kUnk, kA, {"<0x4g>", 0, kByte}}, falls_back), kModelDamaged, "is no byte");
}

TEST(PieceModel, OtherKindsAreNamed) {
  for (const int type : {0, 3, 4, 9}) {
    EXPECT_THROWS(read({kUnk, kA}, trainer(ProtoWriter().number(3, static_cast<unsigned>(type)))),
                  kModelWrongKind, fmt::format("of type {}", type));
  }
}

// A file that ends anywhere is refused, or is a model with fewer pieces or settings.
TEST(PieceModel, AnyPrefixIsReadOrRefused) {
  const std::string file = model_of({kA, {"b", -2, kNormal}}, PieceAlgorithm::kBpe);
  int refused = 0;
  for (std::size_t size = 0; size < file.size(); ++size) {
    const auto error = error_of([&] { read_piece_model(file.substr(0, size), "m"); });
    refused += error ? 1 : 0;
    EXPECT_EQ(error ? error->code() : ErrorCode::kModelDamaged, ErrorCode::kModelDamaged);
  }
  EXPECT_GT(refused, static_cast<int>(file.size()) / 2);
}

TEST(PieceModel, NamesOfBytes) {
  EXPECT_EQ(byte_of_piece("<0x00>"), 0);
  EXPECT_EQ(byte_of_piece("<0xFF>"), 255);
  EXPECT_EQ(byte_of_piece("<0x4A>"), 0x4A);
  for (const char* const text : {"<0xff>", "<0x4>", "<0x041>", "x0x41>", "<0x41", ""}) {
    EXPECT_EQ(byte_of_piece(text), -1) << text;
  }
}

}  // namespace
}  // namespace fovea

namespace fovea::detail {
namespace {

TEST(ProtoReader, ReadsWhatWasWritten) {
  const std::string bytes = ProtoWriter()
                                .number(1, 300)
                                .bytes(2, "ab")
                                .real(3, -1.5f)
                                .number(4, ~std::uint64_t{0})
                                .bytes(536870911, "")
                                .text();
  ProtoReader reader(bytes, "m");
  ASSERT_TRUE(reader.next());
  EXPECT_EQ(reader.field(), 1);
  EXPECT_EQ(reader.number(), 300u);
  ASSERT_TRUE(reader.next());
  EXPECT_EQ(reader.bytes(), "ab");
  ASSERT_TRUE(reader.next());
  EXPECT_EQ(reader.real(), -1.5f);
  ASSERT_TRUE(reader.next());
  EXPECT_EQ(reader.number(), ~std::uint64_t{0});
  ASSERT_TRUE(reader.next());
  EXPECT_EQ(reader.field(), 536870911);
  EXPECT_FALSE(reader.next());
}

TEST(ProtoReader, SkipsWhatNobodyTakes) {
  const std::string fixed64 = ProtoWriter().varint(5 << 3 | 1).text() + "12345678";
  const std::string bytes =
      ProtoWriter().number(1, 300).bytes(2, "ab").real(3, 1).text() + fixed64 + "\x08\x01";
  ProtoReader reader(bytes, "m");
  for (int field = 0; field < 4; ++field) ASSERT_TRUE(reader.next());
  ASSERT_TRUE(reader.next());
  EXPECT_EQ(reader.number(), 1u);
}

void read_all(std::string_view bytes) {
  ProtoReader reader(bytes, "m");
  while (reader.next()) {
  }
}

TEST(ProtoReader, LengthsAreComparedWithWhatIsThere) {
  EXPECT_THROWS(read_all(std::string("\x0A\x05") + "ab"), kModelDamaged,
                "byte 2: 5 bytes are announced, 2 are left");
  const std::string huge = ProtoWriter().varint(0x0A).varint(std::uint64_t{1} << 40).text();
  EXPECT_THROWS(read_all(huge), kModelDamaged, "1099511627776 bytes are announced");
  const std::string largest = ProtoWriter().varint(0x0A).varint(~std::uint64_t{0}).text();
  EXPECT_THROWS(read_all(largest), kModelDamaged, "18446744073709551615 bytes");
  EXPECT_THROWS(read_all("\x0D"
                         "ab"),
                kModelDamaged, "4 bytes are announced, 2 are left");
  EXPECT_THROWS(read_all("\x08\x80"), kModelDamaged, "ends inside a number");
  EXPECT_THROWS(read_all(std::string(1, '\x08') + std::string(10, '\xFF') + "\x01"), kModelDamaged,
                "more than 10 bytes");
}

TEST(ProtoReader, TypesAreChecked) {
  EXPECT_THROWS(read_all("\x0B"), kModelDamaged, "type 3");
  EXPECT_THROWS(read_all("\x0E"), kModelDamaged, "type 6");
  EXPECT_THROWS(read_all(std::string_view("\0\0", 2)), kModelDamaged, "field number 0");
  ProtoReader reader("\x08\x01", "m");
  ASSERT_TRUE(reader.next());
  EXPECT_THROWS(reader.bytes(), kModelDamaged, "field 1 has type 0, expected 2");
}

// A message within a message cannot reach beyond it, and names the byte of the file.
TEST(ProtoReader, MessagesStayWithinTheirs) {
  const std::string inner = "\x0A\x09";
  const std::string bytes = ProtoWriter().bytes(1, inner).bytes(2, "123456789").text();
  ProtoReader reader(bytes, "m");
  ASSERT_TRUE(reader.next());
  ProtoReader message = reader.message();
  ASSERT_TRUE(message.next());
  EXPECT_THROWS(message.bytes(), kModelDamaged, "m: byte 4: 9 bytes are announced, 0 are left");
}

}  // namespace
}  // namespace fovea::detail
