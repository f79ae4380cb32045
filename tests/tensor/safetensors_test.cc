// SPDX-License-Identifier: Apache-2.0
#include "fovea/tensor/safetensors.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>

#include "fovea/base/file.h"
#include "fovea/base/random.h"

namespace fovea {
namespace {

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

}  // namespace
}  // namespace fovea
