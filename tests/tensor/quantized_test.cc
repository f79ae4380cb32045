// SPDX-License-Identifier: Apache-2.0
#include "fovea/tensor/quantized.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "tests/support/throws.h"
#include "tests/tensor/quantized_golden.h"

namespace fovea {
namespace {

std::vector<std::uint8_t> bytes_of(std::string_view hexadecimal) {
  std::vector<std::uint8_t> bytes;
  for (std::size_t n = 0; n < hexadecimal.size(); n += 2) {
    bytes.push_back(
        static_cast<std::uint8_t>(std::stoi(std::string(hexadecimal.substr(n, 2)), nullptr, 16)));
  }
  return bytes;
}

const QuantizedType& type_called(std::string_view name) {
  for (const QuantizedType& type : quantized_types()) {
    if (type.name == name) return type;
  }
  throw std::out_of_range(std::string(name));
}

TEST(Quantized, BlocksHaveTheBitsThatThePackageGgufMakesOfThem) {
  for (const GoldenBlocks& golden : kGoldenBlocks) {
    SCOPED_TRACE(golden.type);
    const std::vector<std::uint8_t> blocks = bytes_of(golden.bytes);
    const std::vector<std::uint8_t> expected = bytes_of(golden.values);
    std::vector<float> values(expected.size() / sizeof(float));
    widen_blocks(type_called(golden.type), blocks, values);
    EXPECT_EQ(std::memcmp(values.data(), expected.data(), expected.size()), 0);
  }
}

TEST(Quantized, EveryTypeThatCanBeWidenedHasGoldenBlocks) {
  std::size_t widened = 0;
  for (const QuantizedType& type : quantized_types()) {
    if (type.widen != nullptr) ++widened;
    EXPECT_EQ(quantized_type(type.number), &type);
  }
  EXPECT_EQ(widened, std::size(kGoldenBlocks));
  EXPECT_EQ(quantized_type(4), nullptr);
}

TEST(Quantized, HalvesAreExact) {
  EXPECT_EQ(float_of_half(0x3C00), 1.F);
  EXPECT_EQ(float_of_half(0xC000), -2.F);
  EXPECT_EQ(float_of_half(0x7BFF), 65504.F);
  EXPECT_EQ(float_of_half(0x0400), 0x1p-14F);
  EXPECT_EQ(float_of_half(0x0001), 0x1p-24F);
  EXPECT_EQ(float_of_half(0x83FF), -1023 * 0x1p-24F);
  EXPECT_EQ(float_of_half(0x7C00), std::numeric_limits<float>::infinity());
  EXPECT_TRUE(std::isnan(float_of_half(0x7E01)));
  EXPECT_TRUE(std::signbit(float_of_half(0x8000)));
}

TEST(Quantized, WholeBlocksOfAKnownTypeAlone) {
  const std::vector<std::uint8_t> bytes(18);
  std::vector<float> values(32);
  widen_blocks(type_called("Q4_0"), bytes, values);
  EXPECT_THROWS(widen_blocks(type_called("Q4_1"), bytes, values), kShape, "Q4_1");
  values.resize(33);
  EXPECT_THROWS(widen_blocks(type_called("Q4_0"), bytes, values), kShape, "33 values");
  values.resize(32);
  EXPECT_THROWS(widen_blocks(type_called("IQ4_NL"), bytes, values), kShape, "IQ4_NL");
}

}  // namespace
}  // namespace fovea
