// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "fovea/text/sentencepiece/piece_model.h"
#include "tests/support/throws.h"
#include "tests/text/sentencepiece/proto_writer.h"

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
