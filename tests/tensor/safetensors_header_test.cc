// SPDX-License-Identifier: Apache-2.0
#include "fovea/tensor/safetensors_header.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fovea/base/error.h"

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

struct Invalid {
  std::string what;  // part of the message that must come
  std::string json;
  std::size_t data_bytes = 0;
};

std::string entry(const std::string& dtype, const std::string& shape, const std::string& offsets) {
  return R"({"dtype":")" + dtype + R"(","shape":)" + shape + R"(,"data_offsets":)" + offsets + "}";
}
const std::string kGood = entry("F32", "[1]", "[0,4]");
const std::string kNext = entry("F32", "[1]", "[4,8]");

std::string nested(int depth) { return std::string(depth, '[') + std::string(depth, ']'); }

std::vector<Invalid> broken_json() {
  return {
      {"must be a JSON object", ""},
      {"must be a JSON object", "   "},
      {"must be a JSON object", "[]"},
      {"must be a JSON object", "\"a\""},
      {"must be a JSON object", "\xef\xbb\xbf{}"},
      {"no valid JSON", "{"},
      {"no valid JSON", "{}}"},
      {"no valid JSON", "{}x"},
      {"no valid JSON", "{}{}"},
      {"zero byte", std::string("{}\0\0", 4)},
      {"zero byte", std::string("{}\0{\"a\":1}", 9)},
      {"no valid JSON", R"({"a":)" + kGood + ",}", 4},
      {"no valid JSON", R"({'a':)" + kGood + "}", 4},
      {"no valid JSON", R"({/*x*/"a":)" + kGood + "}", 4},
      {"no valid JSON", "{\"a\xff\":" + kGood + "}", 4},
      {"no valid JSON", "{\"a\xc0\xaf\":" + kGood + "}", 4},
      {"no valid JSON", R"({"\ud800":)" + kGood + "}", 4},
      {"no valid JSON", "{\"a\n\":" + kGood + "}", 4},
      {"no valid JSON", R"({"a":)" + entry("F32", "[01]", "[0,4]") + "}", 4},
      {"no valid JSON", R"({"a":)" + entry("F32", "[NaN]", "[0,4]") + "}", 4},
      {"an array where none may be", R"({"a":)" + nested(2000000) + "}"},
      {"an object where none may be", R"({"a":{"dtype":{}}})"},
  };
}

std::vector<Invalid> broken_entries() {
  return {
      {"null where none may be", R"({"a":null})"},
      {"true or false where none may be", R"({"a":true})"},
      {"a number where none may be", R"({"a":5})"},
      {"a text where none may be", R"({"a":"F32"})"},
      {"must have dtype, shape and data_offsets", R"({"a":{}})"},
      {"must have dtype, shape", R"({"a":{"dtype":"F32","shape":[1]}})", 4},
      {"must have dtype, shape", R"({"a":{"dtype":"F32","data_offsets":[0,4]}})", 4},
      {"must have dtype, shape", R"({"a":{"shape":[1],"data_offsets":[0,4]}})", 4},
      {"unknown key 'strides'",
       R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4],"strides":[1]}})", 4},
      {"the key dtype twice",
       R"({"a":{"dtype":"F32","dtype":"F32","shape":[1],"data_offsets":[0,4]}})", 4},
      {"the key data_offsets twice",
       R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4],"data_offsets":[0,4]}})", 4},
      {"unknown dtype 'F31'", R"({"a":)" + entry("F31", "[1]", "[0,4]") + "}", 4},
      {"unknown dtype 'f32'", R"({"a":)" + entry("f32", "[1]", "[0,4]") + "}", 4},
      {"a number where none", R"({"a":{"dtype":1,"shape":[1],"data_offsets":[0,4]}})", 4},
      {"a number where none", R"({"a":{"dtype":"F32","shape":1,"data_offsets":[0,4]}})", 4},
      {"a text where none", R"({"a":)" + entry("F32", R"(["1"])", "[0,4]") + "}", 4},
      {"an array where none", R"({"a":)" + entry("F32", "[[1]]", "[0,4]") + "}", 4},
      {"no whole number", R"({"a":)" + entry("F32", "[1.0]", "[0,4]") + "}", 4},
      {"no whole number", R"({"a":)" + entry("F32", "[1e0]", "[0,4]") + "}", 4},
      {"negative number", R"({"a":)" + entry("F32", "[-1]", "[0,4]") + "}", 4},
      {"negative number", R"({"a":)" + entry("F32", "[1]", "[-4,0]") + "}", 4},
      {"no whole number", R"({"a":)" + entry("F32", "[18446744073709551617]", "[0,4]") + "}", 4},
      {"two numbers", R"({"a":)" + entry("F32", "[1]", "[0]") + "}", 4},
      {"two numbers", R"({"a":)" + entry("F32", "[1]", "[0,4,4]") + "}", 4},
      {"two numbers", R"({"a":)" + entry("F32", "[1]", "[]") + "}", 4},
  };
}

std::vector<Invalid> broken_layout() {
  return {
      {"ends before it begins", R"({"a":)" + entry("F32", "[1]", "[4,0]") + "}", 4},
      {"needs 8 bytes; its offsets span 4", R"({"a":)" + entry("F32", "[2]", "[0,4]") + "}", 4},
      {"needs 4 bytes; its offsets span 8", R"({"a":)" + entry("F32", "[1]", "[0,8]") + "}", 8},
      {"more values than can be counted",
       R"({"a":)" + entry("F32", "[4294967296,4294967297]", "[0,4]") + "}", 4},
      {"more values than can be counted",
       R"({"a":)" + entry("F32", "[9223372036854775808]", "[0,4]") + "}", 4},
      {"more bits than can be counted",
       R"({"a":)" + entry("F64", "[4611686018427387904]", "[0,0]") + "}"},
      {"does not fill whole bytes", R"({"a":)" + entry("F4", "[3]", "[0,1]") + "}", 1},
      {"begins at 4; the one before ends at 0", R"({"a":)" + kNext + "}", 8},
      {"'b' begins at 8; the one before ends at 4",
       R"({"a":)" + kGood + R"(,"b":)" + entry("F32", "[1]", "[8,12]") + "}", 12},
      {"'b' begins at 0; the one before ends at 4", R"({"a":)" + kGood + R"(,"b":)" + kGood + "}",
       4},
      {"'b' begins at 2; the one before ends at 4",
       R"({"a":)" + kGood + R"(,"b":)" + entry("F32", "[1]", "[2,6]") + "}", 6},
      {"need 4 bytes after the header; the file has 5", R"({"a":)" + kGood + "}", 5},
      {"need 4 bytes after the header; the file has 3", R"({"a":)" + kGood + "}", 3},
      {"need 0 bytes after the header; the file has 1", "{}", 1},
      {"more bits than can be counted",
       R"({"a":)" + entry("U8", "[2305843009213693952]", "[0,2305843009213693952]") + "}", 4},
      {"need 2305843009213693951 bytes after the header; the file has 4",
       R"({"a":)" + entry("U8", "[2305843009213693951]", "[0,2305843009213693951]") + "}", 4},
      {"'a' is there twice", R"({"a":)" + kGood + R"(,"a":)" + kNext + "}", 8},
      {"'a' is there twice", R"({"a":)" + kGood + R"(,"\u0061":)" + kNext + "}", 8},
      {"two __metadata__", R"({"__metadata__":{},"__metadata__":{}})"},
      {"__metadata__ has the key 'k' twice", R"({"__metadata__":{"k":"1","k":"2"}})"},
      {"a number where none", R"({"__metadata__":{"k":1}})"},
      {"null where none", R"({"__metadata__":{"k":null}})"},
      {"an object where none", R"({"__metadata__":{"k":{}}})"},
      {"an array where none", R"({"__metadata__":[]})"},
      {"a text where none", R"({"__metadata__":"pt"})"},
  };
}

class SafetensorsHeaderRejects : public testing::TestWithParam<Invalid> {};

TEST_P(SafetensorsHeaderRejects, WithAMessageThatSaysWhatAndWhere) {
  try {
    parse_safetensors_header(file_of(GetParam().json, GetParam().data_bytes), "dir/m.safetensors");
    FAIL() << "accepted " << GetParam().json.substr(0, 200);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kModelDamaged);
    EXPECT_THAT(error.what(), testing::StartsWith("dir/m.safetensors: "));
    EXPECT_THAT(error.what(), HasSubstr(GetParam().what));
    EXPECT_NE(error.hint(), "");
  }
}

INSTANTIATE_TEST_SUITE_P(Json, SafetensorsHeaderRejects, testing::ValuesIn(broken_json()));
INSTANTIATE_TEST_SUITE_P(Entries, SafetensorsHeaderRejects, testing::ValuesIn(broken_entries()));
INSTANTIATE_TEST_SUITE_P(Layout, SafetensorsHeaderRejects, testing::ValuesIn(broken_layout()));

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
