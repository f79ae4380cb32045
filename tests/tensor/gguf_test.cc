// SPDX-License-Identifier: Apache-2.0
#include "fovea/tensor/gguf.h"

#include <gmock/gmock.h>

#include <cstring>

#include "fovea/base/file.h"
#include "tests/support/folder.h"
#include "tests/support/gguf_file.h"
#include "tests/support/throws.h"
#include "tests/support/vectors.h"

namespace fovea {
namespace {

using testing::ElementsAre;

const std::vector<float> kFour = {1, -2, 3.5F, 0};

GgufHeader header_of(const std::string& bytes) {
  return parse_gguf_header(MemorySource(bytes), "m.gguf");
}

TEST(Gguf, EveryTypeOfMetadataIsRead) {
  const std::string bytes = gguf_file(
      {gguf_pair("u8", std::uint8_t{200}), gguf_pair("i8", std::int8_t{-100}),
       gguf_pair("u16", std::uint16_t{60000}), gguf_pair("i16", std::int16_t{-30000}),
       gguf_pair("u32", std::uint32_t{4'000'000'000}), gguf_pair("i32", std::int32_t{-2'000'000}),
       gguf_pair("u64", ~std::uint64_t{0}), gguf_pair("i64", std::int64_t{-1} << 60),
       gguf_pair("f32", 0.1F), gguf_pair("f64", 0.1), gguf_pair("yes", true),
       gguf_pair("text", "caf\u00e9"), gguf_array<std::string>("texts", {"a", "", "bc"}),
       gguf_array<std::int32_t>("numbers", {3, -1}), gguf_array<float>("none", {})},
      {});
  const GgufHeader header = header_of(bytes);
  EXPECT_EQ(header.version, 3U);
  EXPECT_EQ(header.alignment, 32U);
  EXPECT_EQ(header.at("u8").whole(), 200);
  EXPECT_EQ(header.at("i8").whole(), -100);
  EXPECT_EQ(header.at("u16").whole(), 60000);
  EXPECT_EQ(header.at("i16").whole(), -30000);
  EXPECT_EQ(header.at("u32").whole(), 4'000'000'000);
  EXPECT_EQ(header.at("i32").whole(), -2'000'000);
  EXPECT_EQ(header.at("i64").whole(), -(std::int64_t{1} << 60));
  EXPECT_EQ(header.at("u64").shown(), "18446744073709551615");
  EXPECT_THROWS(header.at("u64").whole(), kModelWrongKind, "expected a whole number");
  EXPECT_EQ(header.at("f32").number(), static_cast<double>(0.1F));
  EXPECT_EQ(header.at("f32").shown(), "0.1");
  EXPECT_EQ(header.at("f64").number(), 0.1);
  EXPECT_TRUE(header.at("yes").flag());
  EXPECT_EQ(header.at("text").text(), "caf\u00e9");
  EXPECT_TRUE(header.at("texts").is_array());
  EXPECT_EQ(header.at("texts").size(), 3U);
  EXPECT_EQ(header.at("texts").text(1), "");
  EXPECT_EQ(header.at("texts").text(2), "bc");
  EXPECT_EQ(header.at("numbers").whole(1), -1);
  EXPECT_EQ(header.at("none").size(), 0U);
  EXPECT_EQ(header.find("other"), nullptr);
  EXPECT_THROWS(header.at("other"), kModelDamaged, "lack other");
  EXPECT_THROWS(header.at("text").whole(), kModelWrongKind, "got caf");
  EXPECT_THROWS(header.at("u8").text(), kModelWrongKind, "expected a text, got 200 (uint8)");
  EXPECT_THROWS(header.at("u8").flag(), kModelWrongKind, "true or false");
}

TEST(Gguf, TensorsAreWidenedBlockByBlock) {
  std::string q8 = little<std::uint16_t>(0x3800);  // 0.5
  for (int n = 0; n < 32; ++n) q8 += static_cast<char>(n - 16);
  const std::string bytes =
      gguf_file({gguf_pair("general.alignment", std::uint32_t{64})},
                {gguf_tensor("a", {2, 2}, kFour), {"b", {32, 2}, q8 + q8, 8}}, 64);
  const MemorySource file(bytes);
  const GgufSource source(file, "m.gguf");
  EXPECT_THAT(source.names(), ElementsAre("a", "b"));
  EXPECT_EQ(source.info(1).shape, Shape({2, 32}));
  EXPECT_EQ(source.header().tensors[1].begin % 64, 0U);
  EXPECT_EQ(to_vector(source.read(0).vec<float>()), kFour);
  const Tensor b = source.read(1);
  EXPECT_EQ(b.shape(), Shape({2, 32}));
  for (int n = 0; n < 64; ++n)
    EXPECT_EQ(b.data<float>()[n], 0.5F * static_cast<float>(n % 32 - 16));
}

TEST(Gguf, ATensorLongerThanOneReadIsWhole) {
  std::vector<float> values(100'000);
  for (std::size_t n = 0; n < values.size(); ++n) values[n] = static_cast<float>(n);
  const std::string bytes = gguf_file({}, {gguf_tensor("a", {values.size()}, values)});
  const MemorySource file(bytes);
  EXPECT_EQ(to_vector(GgufSource(file, "m.gguf").read(0).vec<float>()), values);
}

TEST(Gguf, ATypeThatCannotBeWidenedIsListedAndNotRead) {
  const std::string bytes = gguf_file({}, {{"a", {32}, std::string(18, '\0'), 20}});
  const MemorySource file(bytes);
  const GgufSource source(file, "m.gguf");
  EXPECT_EQ(source.header().tensors[0].type->name, "IQ4_NL");
  EXPECT_THROWS(source.read(0), kModelWrongKind, "tensor 'a' has values of type IQ4_NL");
}

TEST(Gguf, VersionTwoIsTheSame) {
  std::string bytes = gguf_file({gguf_pair("a", std::uint8_t{1})}, {});
  bytes[4] = 2;
  EXPECT_EQ(header_of(bytes).version, 2U);
}

TEST(Gguf, AFileIsKnownByItsFirstWord) {
  const TestFolder folder;
  write_file_atomically(folder / "m", gguf_file({}, {}));
  write_file_atomically(folder / "n", "GGU");
  EXPECT_TRUE(is_gguf(folder / "m"));
  EXPECT_FALSE(is_gguf(folder / "n"));
  EXPECT_FALSE(is_gguf(folder.path()));
  EXPECT_FALSE(is_gguf(folder / "none"));
}

// ------------------------------------------------------------------------ files made by hand

struct Handmade {
  std::string words;  // of the message
  std::string bytes;
  ErrorCode code = ErrorCode::kModelDamaged;
};

constexpr ErrorCode kWrongKind = ErrorCode::kModelWrongKind;
constexpr std::uint64_t kHuge = std::uint64_t{1} << 62;

// A file of one pair, which is given as it stands there.
std::string with_pair(const std::string& pair) {
  return gguf_head(0, 1) + pair + std::string(64, '\0');
}

// A file of one tensor "a" of four values, changed.
template <class Change>
std::string with_tensor(Change&& change, std::uint64_t offset = 0) {
  GgufTensorText tensor = gguf_tensor("a", {2, 2}, kFour);
  change(tensor);
  std::string bytes = gguf_head(1, 0) + gguf_entry(tensor, offset);
  bytes.resize((bytes.size() + 31) / 32 * 32);
  return bytes + tensor.values;
}

std::string with_sizes(std::vector<std::uint64_t> sizes, std::uint32_t type = 0) {
  return with_tensor([&](GgufTensorText& tensor) {
    tensor.sizes = std::move(sizes);
    tensor.type = type;
  });
}

std::string with_alignment(const std::string& pair) { return gguf_head(0, 1) + pair; }

std::string two_tensors(std::uint64_t second) {
  const GgufTensorText a = gguf_tensor("a", {2, 2}, kFour), b = gguf_tensor("b", {2, 2}, kFour);
  std::string bytes = gguf_head(2, 0) + gguf_entry(a, 0) + gguf_entry(b, second);
  bytes.resize((bytes.size() + 31) / 32 * 32);
  return bytes + std::string(64, '\1');
}

std::vector<Handmade> beginnings() {
  return {
      {"the first word needs 4 bytes", ""},
      {"the first word needs 4 bytes", "GGU"},
      {"expected the file to begin with GGUF", "GGML" + std::string(60, '\0')},
      {"the version needs 4 bytes", "GGUF\3"},
      {"version 2 or 3 of GGUF, got 1", gguf_head(0, 0, 1), kWrongKind},
      {"version 2 or 3 of GGUF, got 4", gguf_head(0, 0, 4), kWrongKind},
      {"version 2 or 3 of GGUF, got 0", gguf_head(0, 0, 0), kWrongKind},
      {"big-endian", gguf_head(0, 0, 0x03000000), kWrongKind},
      {"the number of tensors needs 8 bytes", "GGUF" + little<std::uint32_t>(3) + "1234"},
      {"the number of keys needs 8 bytes", gguf_head(0, 0).substr(0, 20)},
      {"at most 100000 are read", gguf_head(kHuge, 0), kWrongKind},
      {"at most 100000 are read", gguf_head(0, kHuge), kWrongKind},
      {"100000 tensors need at least", gguf_head(100'000, 0)},
      {"2 keys need at least 28 bytes", gguf_head(0, 2) + std::string(27, '\0')},
  };
}

std::vector<Handmade> pairs() {
  const std::string text = gguf_text("k") + gguf_number(GgufValueType::kString);
  const std::string array = gguf_text("k") + gguf_number(GgufValueType::kArray);
  return {
      {"key 0 has 0 bytes", with_pair(gguf_pair("", std::uint8_t{1}))},
      {"key 0 has 4611686018427387904 bytes", with_pair(little(kHuge))},
      {"key 0 has 65536 bytes", with_pair(little<std::uint64_t>(65'536))},
      {"key 0 needs 200 bytes", with_pair(little<std::uint64_t>(200))},
      {"the value of 'k' has the unknown type 13",
       with_pair(gguf_text("k") + little<std::uint32_t>(13))},
      {"the value of 'k' has the unknown type 4294967295",
       with_pair(gguf_text("k") + little(~std::uint32_t{0}))},
      {"the value of 'k' needs 4611686018427387904 bytes", with_pair(text + little(kHuge))},
      {"the value of 'k' needs 18446744073709551615 bytes",
       with_pair(text + little(~std::uint64_t{0}))},
      {"the value of 'k' is neither true nor false: 2",
       with_pair(gguf_text("k") + gguf_number(GgufValueType::kBool) + "\2")},
      {"array of arrays", with_pair(array + gguf_number(GgufValueType::kArray)), kWrongKind},
      {"the value of 'k' has 4611686018427387904 elements",
       with_pair(array + gguf_number(GgufValueType::kUInt8) + little(kHuge))},
      {"the value of 'k' has 4611686018427387904 elements",
       with_pair(array + gguf_number(GgufValueType::kString) + little(kHuge))},
      {"the value of 'k' has 2305843009213693952 elements",
       with_pair(array + gguf_number(GgufValueType::kFloat64) + little(kHuge / 2))},
      {"the value of 'k' has 9 elements",
       with_pair(array + gguf_number(GgufValueType::kFloat64) + little<std::uint64_t>(9))},
      {"the value of 'k' needs 99 bytes",
       with_pair(array + gguf_number(GgufValueType::kString) + little<std::uint64_t>(1) +
                 little<std::uint64_t>(99))},
      {"the value of 'k' needs 8 bytes",
       gguf_head(0, 1) + gguf_text("k") + gguf_number(GgufValueType::kFloat64) + "1234567"},
      {"key 'k' is there twice",
       gguf_head(0, 2) + gguf_pair("k", std::uint64_t{1}) + gguf_pair("k", std::uint64_t{2})},
      {"one of the 3 parts", with_pair(gguf_pair("split.count", std::uint16_t{3})), kWrongKind},
      {"one of the x parts", with_pair(gguf_pair("split.count", "x")), kWrongKind},
      {"power of two", with_alignment(gguf_pair("general.alignment", std::uint32_t{0}))},
      {"power of two", with_alignment(gguf_pair("general.alignment", std::uint32_t{48}))},
      {"power of two", with_alignment(gguf_pair("general.alignment", ~std::uint32_t{0}))},
      {"power of two", with_alignment(gguf_pair("general.alignment", std::uint32_t{1} << 31))},
      {"power of two", with_alignment(gguf_pair("general.alignment", "32"))},
  };
}

std::vector<Handmade> tensors() {
  const auto with_type = [](std::uint32_t type) { return with_sizes({2, 2}, type); };
  return {
      {"the name of tensor 0 has 0 bytes",
       with_tensor([](GgufTensorText& tensor) { tensor.name = ""; })},
      {"tensor 'a' has 0 axes", with_sizes({})},
      {"tensor 'a' has 5 axes", with_sizes({1, 1, 1, 1, 1})},
      {"tensor 'a' has an axis of 0", with_sizes({2, 0})},
      {"tensor 'a' has an axis of 4611686018427387904", with_sizes({kHuge, 2})},
      {"tensor 'a' has an axis of 18446744073709551615", with_sizes({~std::uint64_t{0}})},
      {"tensor 'a' has 256 blocks of 4 bytes", with_sizes({2, 128})},
      {"tensor 'a' has", with_sizes({2000, 2000, 2000, 2000})},
      {"tensor 'a' has values of the unknown type 4", with_type(4), kWrongKind},
      {"tensor 'a' has values of the unknown type 4294967295", with_type(~std::uint32_t{0}),
       kWrongKind},
      {"tensor 'a' has rows of 2 values, and Q4_1 come in blocks of 32", with_type(3)},
      {"tensor 'a' has rows of 32 values, and Q4_K come in blocks of 256", with_sizes({32, 8}, 12)},
      {"tensor 'a' begins at 32; the one before it ends at 0",
       with_tensor([](GgufTensorText&) {}, 32)},
      {"tensor 'a' begins at 1;", with_tensor([](GgufTensorText&) {}, 1)},
      {"tensor 'a' begins at 18446744073709551584;",
       with_tensor([](GgufTensorText&) {}, ~std::uint64_t{0} - 31)},
      {"tensor 'b' begins at 0; the one before it ends at 32", two_tensors(0)},
      {"tensor 'b' begins at 16; the one before it ends at 32", two_tensors(16)},
      {"tensor 'b' begins at 64; the one before it ends at 32", two_tensors(64)},
      {"tensor 'a' ends at byte", with_sizes({2, 3})},
      {"tensor 'a' is there twice", gguf_head(2, 0) + gguf_entry(gguf_tensor("a", {1}, kFour), 0) +
                                        gguf_entry(gguf_tensor("a", {1}, kFour), 32) +
                                        std::string(64, '\0')},
      {"tensor 'a' needs 4 bytes", gguf_head(1, 0) + gguf_text("a") + little<std::uint32_t>(3) +
                                       little<std::uint64_t>(1) + little<std::uint64_t>(1) +
                                       little<std::uint64_t>(1)},
  };
}

TEST(Gguf, FilesMadeByHandAreRefusedByName) {
  std::size_t count = 0;
  for (const auto& cases : {beginnings(), pairs(), tensors()}) {
    for (const Handmade& one : cases) {
      SCOPED_TRACE(one.words);
      const auto error = error_of([&] { header_of(one.bytes); });
      ASSERT_TRUE(error.has_value());
      EXPECT_THAT(std::string(error->what()), testing::HasSubstr(one.words));
      EXPECT_THAT(std::string(error->what()), testing::StartsWith("m.gguf: "));
      EXPECT_EQ(info(error->code()).name, info(one.code).name);
      ++count;
    }
  }
  EXPECT_GE(count, 50U);
}

TEST(Gguf, EveryTruncationOfAFileIsRefused) {
  const std::string whole = gguf_file({gguf_pair("text", "abc"), gguf_array<float>("n", {1, 2})},
                                      {gguf_tensor("a", {2, 2}, kFour)});
  EXPECT_EQ(header_of(whole).tensors.size(), 1U);
  // The padding behind the last tensor is not needed.
  for (std::size_t size = 0; size < whole.size() - 16; ++size) {
    EXPECT_TRUE(error_of([&] { header_of(whole.substr(0, size)); })) << size;
  }
}

TEST(Gguf, AHeaderHasALargestSize) {
  const std::string text(1000, 'x');
  const std::string bytes = gguf_file({gguf_pair("k", std::string_view(text))}, {});
  EXPECT_THROWS(parse_gguf_header(MemorySource(bytes), "m", 500), kModelWrongKind,
                "longer than 500 bytes");
}

}  // namespace
}  // namespace fovea
