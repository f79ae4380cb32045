// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fovea/base/error.h"
#include "fovea/tensor/safetensors.h"

namespace fovea {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;

std::string file_of(std::string_view json, std::size_t data_bytes) {
  std::string file;
  for (int i = 0; i < 8; ++i) file += static_cast<char>(json.size() >> (8 * i) & 0xff);
  return file + std::string(json) + std::string(data_bytes, '\1');
}

std::string entry(const std::string& dtype, const std::string& shape, const std::string& offsets) {
  return R"({"dtype":")" + dtype + R"(","shape":)" + shape + R"(,"data_offsets":)" + offsets + "}";
}
const std::string kGood = entry("F32", "[1]", "[0,4]");

TEST(SafetensorsHeader, RejectsALengthThatLies) {
  const std::string good = file_of("{}", 0);
  for (std::size_t cut = 0; cut < good.size(); ++cut) {
    EXPECT_THROW(parse_safetensors_header(good.substr(0, cut), "x"), Error) << cut;
  }
  for (const std::uint64_t length :
       {std::uint64_t{3}, kMaxHeaderBytes, kMaxHeaderBytes + 1, ~std::uint64_t{0},
        ~std::uint64_t{7}, std::uint64_t{1} << 63}) {
    std::string file = good;
    for (std::size_t i = 0; i < 8; ++i) file[i] = static_cast<char>(length >> (8 * i) & 0xff);
    EXPECT_THROW(parse_safetensors_header(file, "x"), Error) << length;
  }
  EXPECT_NO_THROW(parse_safetensors_header(good, "x"));
}

TEST(SafetensorsHeader, BoundsWhatAHostileHeaderCanAskFor) {
  const auto rejected_as_unsupported = [](const std::string& json) {
    try {
      parse_safetensors_header(file_of(json, 0), "x");
    } catch (const Error& error) {
      return error.code() == ErrorCode::kModelWrongKind;
    }
    return false;
  };
  EXPECT_TRUE(rejected_as_unsupported(R"({"a":)" + entry("F32", "[0,1,1,1,1,1,1]", "[0,0]") + "}"));
  EXPECT_TRUE(
      rejected_as_unsupported("{\"" + std::string(kMaxHeaderTokenBytes + 1, 'a') + "\":1}"));
  std::string many = "{";
  for (std::size_t i = 0; i <= kMaxHeaderEntries; ++i) {
    many += fmt::format("\"{}\":{},", i, entry("F32", "[0]", "[0,0]"));
  }
  many.back() = '}';
  EXPECT_TRUE(rejected_as_unsupported(many));
}

TEST(SafetensorsHeader, AcceptsWhatTheFormatAllows) {
  const std::string json = "\n\t {\"b\" :" + entry("BF16", "[2, 1]", "[ 4,8 ]") +
                           R"(,"__metadata__":{"k":"v","":""},"\u4e2d":)" + kGood + R"(,"":)" +
                           entry("F32", "[0,7]", "[4,4]") + R"(,"s":)" +
                           entry("F64", "[]", "[8,16]") + "} \r\n ";
  const SafetensorsHeader header = parse_safetensors_header(file_of(json, 16), "x");
  std::vector<std::string> names;
  for (const SafetensorsEntry& found : header.entries) names.push_back(found.name);
  EXPECT_THAT(names, ElementsAre("\u4e2d", "", "b", "s"));
  EXPECT_EQ(header.entries[2].shape, (Shape{2, 1}));
  EXPECT_EQ(header.entries[2].type, &stored_type(DType::kBFloat16));
  EXPECT_EQ(header.entries[3].shape, Shape{});
  EXPECT_THAT(header.metadata, ElementsAre(Pair("", ""), Pair("k", "v")));
  EXPECT_EQ(header.data_begin, 8 + json.size());
}

TEST(SafetensorsHeader, KnowsEveryTypeOfTheFormat) {
  for (const auto& [type, bytes] : std::vector<std::pair<std::string, int>>{
           {"BOOL", 8},        {"F4", 4},         {"F6_E2M3", 6}, {"F6_E3M2", 6}, {"U8", 8},
           {"I8", 8},          {"F8_E5M2", 8},    {"F8_E4M3", 8}, {"F8_E8M0", 8}, {"I16", 16},
           {"U16", 16},        {"F16", 16},       {"BF16", 16},   {"I32", 32},    {"U32", 32},
           {"F32", 32},        {"C64", 64},       {"F64", 64},    {"I64", 64},    {"U64", 64},
           {"F8_E4M3FNUZ", 8}, {"F8_E5M2FNUZ", 8}}) {
    const std::string json =
        R"({"a":)" + entry(type, "[8]", "[0," + std::to_string(bytes) + "]") + "}";
    const auto header =
        parse_safetensors_header(file_of(json, static_cast<std::size_t>(bytes)), "x");
    EXPECT_EQ(header.entries[0].type->name, type);
  }
}

TEST(SafetensorsHeader, IsWrittenPaddedAndInAFixedOrder) {
  SafetensorsHeader header;
  header.metadata = {{"k", "a\"b"}, {"format", "pt"}};
  header.entries.push_back({"w", &stored_type(DType::kFloat32), Shape{2, 3}, 0, 24});
  const std::string bytes = safetensors_header_bytes(header);
  EXPECT_EQ(bytes.size() % 8, 0u);
  EXPECT_THAT(
      bytes.substr(8),
      testing::StartsWith(R"({"__metadata__":{"format":"pt","k":"a\"b"},"w":{"dtype":"F32",)"
                          R"("shape":[2,3],"data_offsets":[0,24]}})"));
  EXPECT_EQ(parse_safetensors_header(bytes + std::string(24, 'x'), "x").data_begin, bytes.size());
}

TEST(SafetensorsHeader, IsNotWrittenWithNamesThatCannotBeRead) {
  for (const std::string& name :
       {std::string("__metadata__"), std::string("a\xff"), std::string("w")}) {
    SafetensorsHeader header;
    header.entries.push_back({"w", &stored_type(DType::kFloat32), Shape{0}, 0, 0});
    header.entries.push_back({name, &stored_type(DType::kFloat32), Shape{0}, 0, 0});
    EXPECT_THROW(safetensors_header_bytes(header), Error) << name;
  }
}

}  // namespace
}  // namespace fovea
