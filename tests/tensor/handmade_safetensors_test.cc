// SPDX-License-Identifier: Apache-2.0
// Files of tensors made by hand: each has one mistake, which is named, or is odd and valid.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <set>

#include "fovea/base/file.h"
#include "fovea/tensor/safetensors.h"
#include "fovea/tensor/tensor_file.h"
#include "tests/support/folder.h"
#include "tests/support/throws.h"

namespace fovea {
namespace {

constexpr std::string_view kValid = "";

struct Handmade {
  std::string verdict;  ///< part of the message that must come; kValid: it is read
  std::string bytes;
  ErrorCode code = ErrorCode::kModelDamaged;
};

std::string length_of(std::uint64_t length) {
  std::string bytes;
  for (int i = 0; i < 8; ++i) bytes += static_cast<char>(length >> (8 * i) & 0xff);
  return bytes;
}

std::string file_of(const std::string& json, std::size_t data_bytes = 4) {
  return length_of(json.size()) + json + std::string(data_bytes, '\1');
}

std::string entry(std::string_view dtype, std::string_view shape, std::string_view offsets) {
  return fmt::format(R"({{"dtype":"{}","shape":{},"data_offsets":{}}})", dtype, shape, offsets);
}

// A file of one tensor "a", of so many bytes.
std::string one(std::string_view dtype, std::string_view shape, std::string_view offsets,
                std::size_t data_bytes = 4) {
  return file_of("{\"a\":" + entry(dtype, shape, offsets) + "}", data_bytes);
}

// A file with this text in the place of the entry of "a".
std::string with_entry(std::string_view text) { return file_of(fmt::format("{{\"a\":{}}}", text)); }

// A file with these texts before a good entry and behind it.
std::string around(const std::string& before, const std::string& after,
                   std::size_t data_bytes = 4) {
  return file_of(before + entry("F32", "[1]", "[0,4]") + after, data_bytes);
}

std::string nested(int depth) {
  const auto n = static_cast<std::size_t>(depth);
  return std::string(n, '[') + std::string(n, ']');
}

std::vector<Handmade> lengths() {
  const std::string json = "{\"a\":" + entry("F32", "[1]", "[0,4]") + "}", data(4, '\1');
  const std::string claims = "the header claims";
  return {
      {"0 bytes are too few", ""},
      {"1 bytes are too few", "{"},
      {"7 bytes are too few", length_of(2).substr(0, 7)},
      {"the file has 0 after its length", length_of(2)},
      {"the file has 1 after its length", length_of(2) + "{"},
      {"must be a JSON object", length_of(0)},
      {claims, length_of(json.size() + 5) + json + data},
      {"no valid JSON", length_of(json.size() - 1) + json + data},
      {"no valid JSON", length_of(json.size() + 1) + json + data},
      {"at most 100000000 are allowed", length_of(100'000'001) + json + data},
      {claims, length_of(std::uint64_t{1} << 32) + json + data},
      {claims, length_of(std::uint64_t{1} << 63) + json + data},
      {claims, length_of(~std::uint64_t{0}) + json + data},
      {claims, length_of(~std::uint64_t{7}) + json + data},
      {claims, length_of(json.size() << 8) + json + data},
  };
}

std::vector<Handmade> texts() {
  const std::string good = entry("F32", "[1]", "[0,4]");
  return {
      {"must be a JSON object", file_of("   ", 0)},
      {"must be a JSON object", file_of("[]", 0)},
      {"must be a JSON object", file_of("\"a\"", 0)},
      {"must be a JSON object", file_of("null", 0)},
      {"must be a JSON object", file_of("\xef\xbb\xbf{}", 0)},
      {"must be a JSON object", file_of(std::string("\xff\xfe{\0}\0", 6), 0)},
      {"must be a JSON object", file_of("(dp0\n.", 0)},  // a pickle
      {"no valid JSON", file_of("{", 0)},
      {"no valid JSON", file_of("{}}", 0)},
      {"no valid JSON", file_of("{}x", 0)},
      {"no valid JSON", file_of("{}{}", 0)},
      {"zero byte", file_of(std::string("{}\0\0", 4), 0)},
      {"zero byte", file_of(std::string("{}\0{\"a\":1}", 9), 0)},
      {"zero byte", around("{\"a" + std::string(1, '\0') + "\":", "}")},
      {"no valid JSON", around("{\"a\":", ",}")},
      {"no valid JSON", around("{,\"a\":", "}")},
      {"no valid JSON", around("{\"a\"=", "}")},
      {"no valid JSON", around("{'a':", "}")},
      {"no valid JSON", around("{a:", "}")},
      {"no valid JSON", around("{/*x*/\"a\":", "}")},
      {"no valid JSON", around("{\"a\":", "}//x")},
      {"no valid JSON", around("{\"a\xff\":", "}")},
      {"no valid JSON", around("{\"a\xc0\xaf\":", "}")},
      {"no valid JSON", around("{\"a\xed\xa0\x80\":", "}")},
      {"no valid JSON", around("{\"\\ud800\":", "}")},
      {"no valid JSON", around("{\"\\x61\":", "}")},
      {"no valid JSON", around("{\"a\n\":", "}")},
      {"no valid JSON", one("F32", "[01]", "[0,4]")},
      {"no valid JSON", one("F32", "[+1]", "[0,4]")},
      {"no valid JSON", one("F32", "[0x1]", "[0,4]")},
      {"no valid JSON", one("F32", "[NaN]", "[0,4]")},
      {"no valid JSON", one("F32", "[1,]", "[0,4]")},
      {"an array where none may be", with_entry(nested(2'000'000))},
      {"an object where none may be", with_entry(R"({"dtype":{}})")},
      {"an object where none may be", with_entry("{\"shape\":[{}]}")},
  };
}

std::vector<Handmade> entries() {
  return {
      {"null where none may be", with_entry("null")},
      {"true or false where none may be", with_entry("true")},
      {"a number where none may be", with_entry("5")},
      {"a text where none may be", with_entry("\"F32\"")},
      {"must have dtype, shape and data_offsets", with_entry("{}")},
      {"must have dtype, shape", with_entry(R"({"dtype":"F32","shape":[1]})")},
      {"must have dtype, shape", with_entry(R"({"dtype":"F32","data_offsets":[0,4]})")},
      {"must have dtype, shape", with_entry(R"({"shape":[1],"data_offsets":[0,4]})")},
      {"unknown key 'strides'",
       with_entry(R"({"dtype":"F32","shape":[1],"data_offsets":[0,4],"strides":[1]})")},
      {"unknown key 'DType'", with_entry(R"({"DType":"F32","shape":[1],"data_offsets":[0,4]})")},
      {"the key dtype twice",
       with_entry(R"({"dtype":"F32","dtype":"F32","shape":[1],"data_offsets":[0,4]})")},
      {"the key shape twice",
       with_entry(R"({"dtype":"F32","shape":[1],"shape":[1],"data_offsets":[0,4]})")},
      {"the key data_offsets twice",
       with_entry(R"({"dtype":"F32","shape":[1],"data_offsets":[0,4],"data_offsets":[0,4]})")},
      {"unknown dtype 'F31'", one("F31", "[1]", "[0,4]")},
      {"unknown dtype 'f32'", one("f32", "[1]", "[0,4]")},
      {"unknown dtype ''", one("", "[1]", "[0,4]")},
      {"unknown dtype 'F32 '", one("F32 ", "[1]", "[0,4]")},
      {"a number where none", with_entry(R"({"dtype":1,"shape":[1],"data_offsets":[0,4]})")},
      {"null where none", with_entry(R"({"dtype":null,"shape":[1],"data_offsets":[0,4]})")},
      {"a number where none", with_entry(R"({"dtype":"F32","shape":1,"data_offsets":[0,4]})")},
      {"a text where none", one("F32", "[\"1\"]", "[0,4]")},
      {"an array where none", one("F32", "[[1]]", "[0,4]")},
      {"no whole number", one("F32", "[1.0]", "[0,4]")},
      {"no whole number", one("F32", "[1e0]", "[0,4]")},
      {"negative number", one("F32", "[-1]", "[0,4]")},
      {"negative number", one("F32", "[-0]", "[0,0]", 0)},
      {"negative number", one("F32", "[1]", "[-4,0]")},
      {"no whole number", one("F32", "[18446744073709551617]", "[0,4]")},
      {"two numbers", one("F32", "[1]", "[0]")},
      {"two numbers", one("F32", "[1]", "[0,4,4]")},
      {"two numbers", one("F32", "[1]", "[]")},
      {"true or false where none", one("F32", "[true]", "[0,4]")},
  };
}

std::vector<Handmade> layouts() {
  const std::string good = entry("F32", "[1]", "[0,4]"), next = entry("F32", "[1]", "[4,8]");
  const auto two = [](const std::string& a, const std::string& b, std::size_t bytes) {
    return file_of("{\"a\":" + a + ",\"b\":" + b + "}", bytes);
  };
  return {
      {"ends before it begins", one("F32", "[1]", "[4,0]")},
      {"needs 8 bytes; its offsets span 4", one("F32", "[2]", "[0,4]")},
      {"needs 4 bytes; its offsets span 8", one("F32", "[1]", "[0,8]", 8)},
      {"needs 4 bytes; its offsets span 4294967300", one("F32", "[1]", "[0,4294967300]")},
      {"needs 0 bytes; its offsets span 4", one("F32", "[0]", "[0,4]")},
      {"more values than can be counted", one("F32", "[4294967296,4294967297]", "[0,4]")},
      {"more values than can be counted", one("F32", "[9223372036854775808]", "[0,4]")},
      {"more values than can be counted", one("F32", "[4611686018427387904,4]", "[0,0]", 0)},
      {"more bits than can be counted", one("F64", "[4611686018427387904]", "[0,0]", 0)},
      {"more bits than can be counted",
       one("U8", "[2305843009213693952]", "[0,2305843009213693952]")},
      {"does not fill whole bytes", one("F4", "[3]", "[0,1]", 1)},
      {"does not fill whole bytes", one("F6_E2M3", "[1]", "[0,1]", 1)},
      {"begins at 4; the one before ends at 0", file_of("{\"a\":" + next + "}", 8)},
      {"'b' begins at 8; the one before ends at 4", two(good, entry("F32", "[1]", "[8,12]"), 12)},
      {"'b' begins at 0; the one before ends at 4", two(good, good, 4)},
      {"'b' begins at 2; the one before ends at 4", two(good, entry("F32", "[1]", "[2,6]"), 6)},
      {"'a' begins at 0; the one before ends at 4", two(entry("F64", "[1]", "[0,8]"), good, 8)},
      {"begins at 3", two(good, entry("F32", "[0]", "[3,3]"), 4)},
      {"need 4 bytes after the header; the file has 5", file_of("{\"a\":" + good + "}", 5)},
      {"need 4 bytes after the header; the file has 3", file_of("{\"a\":" + good + "}", 3)},
      {"need 4 bytes after the header; the file has 0", file_of("{\"a\":" + good + "}", 0)},
      {"need 0 bytes after the header; the file has 1", file_of("{}", 1)},
      {"need 0 bytes after the header", file_of("{}", 0) + "PK\x05\x06" + std::string(18, '\0')},
      {"need 2305843009213693951 bytes after the header; the file has 4",
       one("U8", "[2305843009213693951]", "[0,2305843009213693951]")},
      {"'a' is there twice", file_of("{\"a\":" + good + ",\"a\":" + next + "}", 8)},
      {"'a' is there twice", file_of("{\"a\":" + good + ",\"\\u0061\":" + next + "}", 8)},
  };
}

std::vector<Handmade> metadata() {
  const std::string wrong(32, '0');
  return {
      {"two __metadata__", file_of(R"({"__metadata__":{},"__metadata__":{}})", 0)},
      {"the key 'k' twice", file_of(R"({"__metadata__":{"k":"1","k":"2"}})", 0)},
      {"a number where none", file_of(R"({"__metadata__":{"k":1}})", 0)},
      {"null where none", file_of(R"({"__metadata__":{"k":null}})", 0)},
      {"true or false where none", file_of(R"({"__metadata__":{"k":true}})", 0)},
      {"an object where none", file_of(R"({"__metadata__":{"k":{}}})", 0)},
      {"an array where none", file_of(R"({"__metadata__":{"k":[]}})", 0)},
      {"an array where none", file_of(R"({"__metadata__":[]})", 0)},
      {"a text where none", file_of(R"({"__metadata__":"pt"})", 0)},
      {"null where none", file_of(R"({"__metadata__":null})", 0)},
      {"wrong checksum", file_of(R"({"__metadata__":{"xxh3-128":")" + wrong + "\"}}", 0)},
      {"wrong checksum: expected ''", file_of(R"({"__metadata__":{"xxh3-128":""}})", 0)},
      {"none where it belongs", file_of(R"({"__metadata__":{"xxh3-128" : ")" + wrong + "\"}}", 0)},
  };
}

std::vector<Handmade> what_fovea_lacks() {
  std::vector<Handmade> files = {
      {"more than 6 axes", one("F32", "[1,1,1,1,1,1,1]", "[0,4]")},
      {"more than 6 axes", one("F32", "[0,1,1,1,1,1,1]", "[0,0]", 0)},
  };
  for (const auto& [type, bytes] :
       std::initializer_list<std::pair<const char*, int>>{{"F4", 4},
                                                          {"F6_E2M3", 6},
                                                          {"F6_E3M2", 6},
                                                          {"I8", 8},
                                                          {"F8_E5M2", 8},
                                                          {"F8_E4M3", 8},
                                                          {"F8_E8M0", 8},
                                                          {"F8_E4M3FNUZ", 8},
                                                          {"F8_E5M2FNUZ", 8},
                                                          {"I16", 16},
                                                          {"U16", 16},
                                                          {"F16", 16},
                                                          {"U32", 32},
                                                          {"C64", 64},
                                                          {"U64", 64}}) {
    files.push_back({fmt::format("'a' is {};", type), one(type, "[8]", fmt::format("[0,{}]", bytes),
                                                          static_cast<std::size_t>(bytes))});
  }
  for (Handmade& file : files) file.code = ErrorCode::kModelWrongKind;
  return files;
}

std::vector<Handmade> valid() {
  const std::string good = entry("F32", "[1]", "[0,4]");
  std::vector<std::string> files = {
      file_of("{}", 0),
      file_of(" \t\r\n{} \t\r\n", 0),
      file_of(R"({"__metadata__":{}})", 0),
      file_of(R"({"__metadata__":{"":"","format":"np","\u0000":"\u0000"}})", 0),
      around("{\"a\":", ",\"__metadata__\":{\"k\":\"v\"}}"),
      around("{\"\":", "}"),
      around("{\"../../etc/passwd\":", "}"),
      around("{\"\\u4e2d\\ud83d\\ude00\\u0000\":", "}"),
      around("{\"" + std::string(100'000, 'a') + "\":", "}"),
      around("{\"a\":", "}" + std::string(4096, ' ')),
      one("F32", "[]", "[0,4]"),
      one("F32", "[ 1 , 1 , 1 , 1 , 1 , 1 ]", "[ 0 , 4 ]"),
      one("F32", "[0]", "[0,0]", 0),
      one("F32", "[9223372036854775807,0]", "[0,0]", 0),
      one("BF16", "[2]", "[0,4]"),
      one("I32", "[1]", "[0,4]"),
      one("U8", "[4]", "[0,4]"),
      one("BOOL", "[2,2]", "[0,4]"),
      one("F64", "[1]", "[0,8]", 8),
      one("I64", "[1]", "[0,8]", 8),
      with_entry(R"({"data_offsets":[0,4],"shape":[1],"dtype":"F32"})"),
      file_of("{\"b\":" + entry("F32", "[1]", "[4,8]") + ",\"a\":" + good + "}", 8),
      // Values that do not begin on a boundary of their size.
      file_of(
          "{\"a\":" + entry("U8", "[1]", "[0,1]") + ",\"b\":" + entry("F64", "[1]", "[1,9]") + "}",
          9),
      // Nothing at all, between and behind the others.
      file_of("{\"a\":" + good + ",\"e\":" + entry("F32", "[0]", "[0,0]") +
              ",\"f\":" + entry("F32", "[2,0]", "[4,4]") + "}"),
  };
  std::vector<Handmade> all;
  for (std::string& file : files) all.push_back({std::string(kValid), std::move(file)});
  return all;
}

std::vector<Handmade> all_of_them() {
  std::vector<Handmade> all;
  for (const auto& some :
       {lengths(), texts(), entries(), layouts(), metadata(), what_fovea_lacks(), valid()}) {
    all.insert(all.end(), some.begin(), some.end());
  }
  return all;
}

void expect_verdict(const std::optional<Error>& refused, const Handmade& file, ErrorCode code,
                    const std::string& where) {
  const std::string shown = file.bytes.substr(0, 200);
  ASSERT_EQ(refused.has_value(), file.verdict != kValid)
      << shown << (refused ? refused->what() : "");
  if (!refused) return;
  EXPECT_EQ(info(refused->code()).name, info(code).name) << shown;
  EXPECT_THAT(refused->what(), testing::StartsWith(where + ": ")) << shown;
  EXPECT_THAT(refused->what(), testing::HasSubstr(file.verdict)) << shown;
  EXPECT_NE(refused->hint(), "") << shown;
}

TEST(HandmadeSafetensors, AreReadOrRefusedByWhatIsWrong) {
  const TestFolder folder;
  const std::filesystem::path path = folder / "m.safetensors";
  const std::vector<Handmade> files = all_of_them();
  std::set<std::string> different;
  for (const Handmade& file : files) {
    expect_verdict(error_of([&] { parse_safetensors(file.bytes, "memory"); }), file, file.code,
                   "memory");
    write_file_atomically(path, file.bytes);
    const ErrorCode code = file.bytes.empty() ? ErrorCode::kEmptyInput : ErrorCode::kInputFormat;
    Handmade in_file = file;
    if (file.bytes.empty()) in_file.verdict = "the file is empty";
    if (file.verdict == "at most 100000000 are allowed")
      in_file.verdict = "at most 4194304 are allowed";
    expect_verdict(error_of([&] { TensorFile(path).read(); }), in_file, code, path.string());
    different.insert(file.bytes);
  }
  EXPECT_EQ(different.size(), files.size());
  EXPECT_GE(files.size(), 160u);
}

}  // namespace
}  // namespace fovea
