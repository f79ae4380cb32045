// SPDX-License-Identifier: Apache-2.0
#include "fovea/tensor/safetensors.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>

#include "fovea/base/error.h"
#include "fovea/base/file.h"
#include "fovea/base/random.h"

namespace fovea {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;

constexpr DType kDTypes[] = {DType::kFloat32, DType::kBFloat16, DType::kInt32,
                             DType::kFloat64, DType::kInt64,    DType::kUInt8};

Tensor random_tensor(const Shape& shape, DType dtype, Random& random) {
  Tensor tensor = Tensor::empty(shape, dtype);
  for (std::byte& byte : tensor.bytes()) byte = static_cast<std::byte>(random.next_u32() & 0xff);
  return tensor;
}

std::vector<NamedTensor> random_tensors(Random& random) {
  std::vector<NamedTensor> tensors;
  const index count = random.below(6);
  for (index i = 0; i < count; ++i) {
    std::vector<index> sizes(static_cast<std::size_t>(random.below(5)));
    for (index& size : sizes) size = random.below(5);
    tensors.push_back(
        {"\u4e2d\"\\.t" + std::to_string(i),
         random_tensor(Shape(sizes), kDTypes[random.below(std::size(kDTypes))], random)});
  }
  return tensors;
}

bool same(const Tensor& a, const Tensor& b) {
  return a.shape() == b.shape() && a.dtype() == b.dtype() &&
         std::equal(a.bytes().begin(), a.bytes().end(), b.bytes().begin(), b.bytes().end());
}

std::vector<NamedTensor> two_tensors() {
  Random random(7, RandomUse::kTest);
  return {{"a", random_tensor({3, 2}, DType::kFloat32, random)},
          {"b", random_tensor({5}, DType::kBFloat16, random)}};
}

template <class F>
std::string damage_of(F&& f) {
  try {
    f();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kModelDamaged);
    return error.what();
  }
  return "no error";
}

TEST(Safetensors, WhatIsWrittenIsReadBack) {
  Random random(1, RandomUse::kTest);
  for (int round = 0; round < 300; ++round) {
    const auto tensors = random_tensors(random);
    const std::string bytes = safetensors_bytes(tensors, {{"step", "12"}, {"note", "a\nb\t\x01"}});
    const Safetensors read = parse_safetensors(bytes, "x", ChecksumRule::kRequired);
    ASSERT_EQ(read.tensors.size(), tensors.size());
    for (const NamedTensor& named : tensors) EXPECT_TRUE(same(read.at(named.name), named.tensor));
    EXPECT_THAT(read.metadata, testing::IsSupersetOf({Pair("step", "12"), Pair("format", "pt"),
                                                      Pair("note", "a\nb\t\x01")}));
  }
}

TEST(Safetensors, SameTensorsGiveSameBytesInAnyOrder) {
  Random random(2, RandomUse::kTest);
  for (int round = 0; round < 100; ++round) {
    auto tensors = random_tensors(random);
    const std::string bytes = safetensors_bytes(tensors);
    for (std::size_t i = tensors.size(); i > 1; --i) {
      std::swap(tensors[i - 1],
                tensors[static_cast<std::size_t>(random.below(static_cast<index>(i)))]);
    }
    EXPECT_EQ(safetensors_bytes(tensors), bytes);
    EXPECT_EQ(safetensors_bytes(parse_safetensors(bytes, "x").tensors), bytes);
  }
}

TEST(Safetensors, EveryTensorIsAlignedToItsValues) {
  Random random(3, RandomUse::kTest);
  for (int round = 0; round < 100; ++round) {
    const std::string bytes = safetensors_bytes(random_tensors(random));
    const SafetensorsHeader header = parse_safetensors_header(bytes, "x");
    EXPECT_EQ(header.data_begin % 8, 0u);
    for (const SafetensorsEntry& entry : header.entries) {
      EXPECT_TRUE(entry.begin == entry.end || entry.begin % (entry.type->bits / 8) == 0);
    }
  }
}

// With the checksum, nothing that happens to a file of ours passes for whole.
TEST(Safetensors, EveryFlippedBitIsFound) {
  const std::string bytes = safetensors_bytes(two_tensors());
  for (std::size_t bit = 0; bit < 8 * bytes.size(); ++bit) {
    std::string flipped = bytes;
    flipped[bit / 8] = static_cast<char>(flipped[bit / 8] ^ (1 << bit % 8));
    EXPECT_THROW(parse_safetensors(flipped, "x", ChecksumRule::kRequired), Error) << bit;
  }
}

TEST(Safetensors, EveryTruncationAndEveryTailIsFound) {
  const std::string bytes = safetensors_bytes(two_tensors());
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    EXPECT_THROW(parse_safetensors(bytes.substr(0, size), "x"), Error) << size;
  }
  EXPECT_THROW(parse_safetensors(bytes + '\0', "x"), Error);
  EXPECT_THROW(parse_safetensors(bytes + "PK\x03\x04", "x"), Error);
}

// Without a checksum, damage may go unseen, but never ends in anything but an Error.
TEST(Safetensors, RandomDamageIsAnErrorOrAnotherFile) {
  Random random(4, RandomUse::kTest);
  const std::string good = safetensors_bytes(two_tensors());
  int rejected = 0;
  for (int round = 0; round < 2000; ++round) {
    std::string bytes = good;
    for (index flips = random.below(4); flips >= 0; --flips) {
      char& byte = bytes[static_cast<std::size_t>(random.below(static_cast<index>(bytes.size())))];
      byte = static_cast<char>(byte ^ (1 << random.below(8)));
    }
    if (round % 4 == 0)
      bytes.resize(static_cast<std::size_t>(random.below(static_cast<index>(bytes.size()))));
    try {
      parse_safetensors_header(bytes, "x");
    } catch (const Error&) {
      ++rejected;
    }
    EXPECT_THROW(parse_safetensors(bytes, "x", ChecksumRule::kRequired), Error);
  }
  EXPECT_GT(rejected, 500);
}

TEST(Safetensors, AFileOfOthersNeedsNoChecksum) {
  SafetensorsHeader header;
  header.entries.push_back({"w", &stored_type(DType::kInt32), Shape{1}, 0, 4});
  const std::string bytes = safetensors_header_bytes(header) + std::string("\x2a\0\0\0", 4);
  EXPECT_EQ(parse_safetensors(bytes, "x").at("w").data<std::int32_t>()[0], 42);
  EXPECT_THAT(damage_of([&] { parse_safetensors(bytes, "x", ChecksumRule::kRequired); }),
              HasSubstr("x: the checksum is missing"));
}

TEST(Safetensors, AChecksumThatIsPresentMustBeRight) {
  for (const std::string& checksum : {std::string(32, '0'), std::string("abc"), std::string()}) {
    SafetensorsHeader header;
    header.metadata[std::string(kChecksumKey)] = checksum;
    const std::string bytes = safetensors_header_bytes(header);
    EXPECT_THAT(damage_of([&] { parse_safetensors(bytes, "x"); }), HasSubstr("x: wrong checksum"));
  }
}

TEST(Safetensors, TypesWithoutUseAreNamed) {
  const std::string json = R"({"h":{"dtype":"F16","shape":[4],"data_offsets":[0,8]}})";
  std::string bytes(8, '\0');
  bytes[0] = static_cast<char>(json.size());
  bytes += json + std::string(8, '\0');
  try {
    parse_safetensors(bytes, "x");
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kModelWrongKind);
    EXPECT_THAT(error.what(), HasSubstr("x: tensor 'h' is F16; only F32, BF16, F64, I32"));
  }
}

TEST(Safetensors, BooleansAreReadAsBytes) {
  const std::string json = R"({"b":{"dtype":"BOOL","shape":[2],"data_offsets":[0,2]}})";
  std::string bytes(8, '\0');
  bytes[0] = static_cast<char>(json.size());
  const Safetensors read = parse_safetensors(bytes + json + std::string("\1\0", 2), "x");
  EXPECT_EQ(read.at("b").describe(), "uint8 [2]");
  EXPECT_EQ(read.at("b").data<std::uint8_t>()[0], 1);
  EXPECT_THAT(safetensors_bytes(read.tensors), HasSubstr("\"U8\""));
}

TEST(Safetensors, NamesTheTensorThatIsMissing) {
  const Safetensors read = parse_safetensors(safetensors_bytes(two_tensors()), "x");
  EXPECT_EQ(read.find("c"), nullptr);
  EXPECT_THAT(damage_of([&] { read.at("c"); }), HasSubstr("the tensor 'c' is missing"));
}

TEST(Safetensors, DoesNotWriteWhatCannotBeRead) {
  const Tensor tensor(Shape{1});
  const std::vector<NamedTensor> twice = {{"a", tensor}, {"a", tensor}};
  EXPECT_THROW(safetensors_bytes(twice), Error);
  const std::vector<NamedTensor> undefined = {{"a", Tensor()}};
  EXPECT_THROW(safetensors_bytes(undefined), Error);
}

TEST(Safetensors, GoesThroughAFile) {
  const auto path = std::filesystem::path(testing::TempDir()) / "fovea_tensor_test.safetensors";
  const auto tensors = two_tensors();
  write_safetensors(path, tensors);
  EXPECT_TRUE(same(read_safetensors(path).at("b"), tensors[1].tensor));
  write_file_atomically(path, "short");
  EXPECT_THAT(damage_of([&] { read_safetensors(path); }),
              HasSubstr(path.string() + ": 5 bytes are too few"));
  std::filesystem::remove(path);
}

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
