// SPDX-License-Identifier: Apache-2.0
#include "fovea/tensor/gguf_writer.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <cmath>
#include <limits>

#include "fovea/base/option.h"
#include "fovea/tensor/gguf.h"
#include "tests/support/vectors.h"

namespace fovea {
namespace {

const GgufWeightType& type(std::string_view name) { return *find_named(gguf_weight_types(), name); }

// Both signs, several sizes, no symmetry.
std::vector<float> block() {
  std::vector<float> values;
  for (int n = 0; n < 32; ++n) {
    values.push_back(static_cast<float>((n * 37 % 64 - 29) / 7.0 * (1 + n % 3)));
  }
  return values;
}

std::string narrowed(const GgufWeightType& to) {
  const std::vector<float> values = block();
  std::string hex;
  std::vector<std::uint8_t> bytes(static_cast<std::size_t>(to.bytes));
  for (index n = 0; n < 32; n += to.block) {
    to.narrow(values.data() + n, bytes.data());
    for (const std::uint8_t byte : bytes) hex += fmt::format("{:02x}", byte);
  }
  return hex;
}

// The bytes are those of gguf.quants.quantize (the package gguf 0.17, from PyPI) for this block.
TEST(GgufWriter, BlocksAreRoundedAsGgmlRoundsThem) {
  EXPECT_EQ(
      narrowed(type("f16")),
      "25c4924012c8254125c1004a92306ec7b74492c0004625c16e44923ceec800406ec32549dbb6db480042b7c1db"
      "4449c4b7430000c9c9b73ddbc4494800bc4948");
  EXPECT_EQ(
      narrowed(type("bf16")),
      "85c0124002c1254025c04041123eeec0974012c0c04025c08e40923f1ec100406ec02541dbbe1b41404037c09b"
      "4089c07740000039c1b73f9bc0094180bf0941");
  EXPECT_EQ(narrowed(type("q8_0")),
            "0c2ed418aa1be57f02b132e840e52f0c9815d96dfb6720e233d32900860fcd5bf55b");
  EXPECT_EQ(narrowed(type("q4_0")), "00beab168d266aa058bd558af47ab5279f27");
  EXPECT_EQ(narrowed(type("q4_1")), "493ec9c955e972e9966fa753aa760b864ad871d9");
}

TEST(GgufWriter, HalvesRoundToEvenAndKeepWhatIsNotFinite) {
  const auto half = [](float value) {
    std::uint8_t bytes[2];
    type("f16").narrow(&value, bytes);
    return bytes[0] | bytes[1] << 8;
  };
  EXPECT_EQ(half(1 + 0x1p-11F), 0x3c00);  // a tie
  EXPECT_EQ(half(1 + 3 * 0x1p-11F), 0x3c02);
  EXPECT_EQ(half(0x1p-24F), 1);
  EXPECT_EQ(half(0x1p-25F), 0);
  EXPECT_EQ(half(0x1p-14F - 0x1p-26F), 0x400);  // rounds up to the least normal
  EXPECT_EQ(half(65504), 0x7bff);
  EXPECT_EQ(half(65520), 0x7c00);
  EXPECT_EQ(half(-std::numeric_limits<float>::infinity()), 0xfc00);
  EXPECT_EQ(half(NAN) & 0x7e00, 0x7e00);
}

// The inverse of such a step is no number.
TEST(GgufWriter, BlocksOfTheSmallestNumbersBecomeZeros) {
  const std::vector<float> values(32, std::numeric_limits<float>::denorm_min());
  for (const char* name : {"q8_0", "q4_0", "q4_1"}) {
    std::vector<std::uint8_t> bytes(static_cast<std::size_t>(type(name).bytes), 0xff);
    type(name).narrow(values.data(), bytes.data());
    EXPECT_EQ(bytes[0], 0) << name;  // of the step, a half
    EXPECT_EQ(bytes[1] & 0x7f, 0) << name;
  }
}

TEST(GgufWriter, WhatIsWrittenIsReadAgain) {
  std::vector<float> values = block();
  values.insert(values.end(), values.rbegin(), values.rend());
  const std::vector<NamedTensor> tensors = {
      {"matrix", Tensor::of<float>({2, 32}, values)},
      {"vector", Tensor::of<float>({32}, block())},
      {"short rows", Tensor::of<float>({4, 3}, std::span(values).first(12))}};
  for (const GgufWeightType& to : gguf_weight_types()) {
    const std::string bytes = gguf_bytes({{{"a.text", std::string("ü")},
                                           {"a.number", std::uint32_t{7}},
                                           {"a.real", 0.5F},
                                           {"a.flag", true},
                                           {"a.texts", std::vector<std::string>{"x", ""}},
                                           {"a.numbers", std::vector<std::int32_t>{-1, 2}}}},
                                         tensors, to);
    const MemorySource file(bytes);
    const GgufSource source(file, "m.gguf");
    EXPECT_EQ(source.header().at("a.text").text(), "ü");
    EXPECT_EQ(source.header().at("a.number").whole(), 7);
    EXPECT_EQ(source.header().at("a.real").number(), 0.5);
    EXPECT_TRUE(source.header().at("a.flag").flag());
    EXPECT_EQ(source.header().at("a.texts").size(), 2U);
    EXPECT_EQ(source.header().at("a.numbers").whole(0), -1);
    ASSERT_EQ(source.names().size(), 3U);
    const auto matrix = to_vector(source.read(0).vec<float>());
    const double most = to.block > 1 ? 2.0 : 0.07;  // a step of 16 between -12.4 and 12
    for (std::size_t n = 0; n < matrix.size(); ++n) {
      EXPECT_NEAR(matrix[n], values[n], to.name == "f32" ? 0 : most) << to.name;
    }
    EXPECT_EQ(to_vector(source.read(1).vec<float>()), block()) << "a vector stays float32";
    const auto rows = to_vector(source.read(2).vec<float>());
    for (std::size_t n = 0; n < rows.size(); ++n) {
      EXPECT_NEAR(rows[n], values[n], to.block > 1 || to.name == "f32" ? 0 : 0.07) << to.name;
    }
  }
}

}  // namespace
}  // namespace fovea
