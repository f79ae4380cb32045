// SPDX-License-Identifier: Apache-2.0
#include "fovea/tensor/tensor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <numeric>
#include <vector>

#include "fovea/base/error.h"

namespace fovea {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

Tensor counted(const Shape& shape) {
  std::vector<float> values(static_cast<std::size_t>(shape.size()));
  std::iota(values.begin(), values.end(), 0.0f);
  return Tensor::of<float>(shape, values);
}

template <class T>
std::vector<T> values_of(const Tensor& tensor) {
  const auto values = tensor.vec<T>();
  return {values.begin(), values.end()};
}

template <class F>
std::string message_of(F&& f) {
  try {
    f();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kShape);
    return error.what();
  }
  return "no error";
}

TEST(Tensor, StartsWithZerosOnA64ByteBoundary) {
  for (const DType dtype : {DType::kFloat32, DType::kBFloat16, DType::kInt32, DType::kFloat64}) {
    const Tensor tensor(Shape{3, 5}, dtype);
    EXPECT_EQ(tensor.byte_size(), 15 * byte_size(dtype));
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(tensor.bytes().data()) % 64, 0u);
    EXPECT_THAT(tensor.bytes(), Each(std::byte{0}));
  }
}

TEST(Tensor, WithoutMemoryHasNoValues) {
  const Tensor none;
  EXPECT_FALSE(none.defined());
  EXPECT_EQ(none.size(), 0);
  EXPECT_EQ(none.describe(), "no tensor");
  EXPECT_FALSE(none.clone().defined());
  EXPECT_THAT(message_of([&] { none.data<float>(); }),
              HasSubstr("expected float32 values; got no tensor"));
  EXPECT_THAT(message_of([&] { (void)none.reshape({1}); }), HasSubstr("cannot reshape no tensor"));
}

TEST(Tensor, ViewsShareMemoryAndClonesDoNot) {
  Tensor tensor = counted({4, 3});
  Tensor row = tensor.slice(1, 3);
  EXPECT_EQ(row.shape(), (Shape{2, 3}));
  row.data<float>()[0] = 100;
  tensor.reshape({12}).data<float>()[4] = 200;
  EXPECT_THAT(values_of<float>(tensor.slice(1, 2)), ElementsAre(100, 200, 5));
  Tensor copy = row.clone();
  copy.data<float>()[0] = 7;
  EXPECT_EQ(row.data<float>()[0], 100);
}

TEST(Tensor, AViewKeepsTheMemoryAlive) {
  Tensor view;
  {
    const Tensor tensor = counted({4, 3});
    view = tensor.slice(3, 4);
  }
  EXPECT_THAT(values_of<float>(view), ElementsAre(9, 10, 11));
}

TEST(Tensor, SlicesMayBeEmptyAndMustLieInside) {
  const Tensor tensor = counted({4, 3});
  EXPECT_EQ(tensor.slice(4, 4).size(), 0);
  EXPECT_EQ(tensor.slice(2, 2).shape(), (Shape{0, 3}));
  EXPECT_EQ(Tensor(Shape{3, 0}).slice(1, 3).shape(), (Shape{2, 0}));
  EXPECT_THAT(message_of([&] { (void)tensor.slice(2, 5); }),
              HasSubstr("rows [2, 5) do not lie in float32 [4, 3]"));
  EXPECT_THAT(message_of([&] { (void)tensor.slice(-1, 2); }), HasSubstr("rows [-1, 2)"));
  EXPECT_THAT(message_of([&] { (void)tensor.slice(3, 2); }), HasSubstr("rows [3, 2)"));
  EXPECT_THAT(message_of([] { (void)Tensor(Shape{}).slice(0, 1); }), HasSubstr("cannot slice"));
}

TEST(Tensor, RowsTakeTheLastAxisAsColumns) {
  Tensor tensor = counted({2, 2, 3});
  const Rows<float> rows = tensor.rows<float>();
  EXPECT_EQ(rows.rows, 4);
  EXPECT_EQ(rows.columns, 3);
  EXPECT_EQ(rows[3][2], 11);
  EXPECT_EQ(Tensor(Shape{}).rows<float>().rows, 1);
  EXPECT_EQ(Tensor(Shape{}).rows<float>().columns, 1);
  EXPECT_EQ(Tensor(Shape{5, 0}).rows<float>().rows, 5);
}

TEST(Tensor, ConvertsBetweenTypes) {
  const std::vector<float> values = {1.5f, -2.75f, 1.0f + 0x1p-8f, 300.0f};
  const Tensor tensor = Tensor::of<float>({4}, values);
  EXPECT_THAT(values_of<double>(tensor.to(DType::kFloat64)),
              ElementsAre(1.5, -2.75, 1.0 + 0x1p-8, 300.0));
  EXPECT_THAT(values_of<std::int32_t>(tensor.to(DType::kInt32)), ElementsAre(1, -2, 1, 300));
  EXPECT_THAT(values_of<float>(tensor.to(DType::kBFloat16).to(DType::kFloat32)),
              ElementsAre(1.5f, -2.75f, 1.0f, 300.0f));
  EXPECT_THAT(values_of<std::int32_t>(tensor.to(DType::kBFloat16).to(DType::kInt32)),
              ElementsAre(1, -2, 1, 300));
  EXPECT_NE(tensor.to(DType::kFloat32).data<float>(), tensor.data<float>());
}

TEST(Tensor, WhatIsNoInt32DoesNotBecomeOne) {
  for (const double x : {2147483648.0, -2147483649.0, std::numeric_limits<double>::infinity(),
                         std::numeric_limits<double>::quiet_NaN()}) {
    const Tensor tensor = Tensor::of<double>({1}, std::vector{x});
    EXPECT_THAT(message_of([&] { (void)tensor.to(DType::kInt32); }),
                HasSubstr("cannot become an int32"));
  }
  const Tensor edge = Tensor::of<double>({2}, std::vector{2147483647.9, -2147483648.9});
  EXPECT_THAT(values_of<std::int32_t>(edge.to(DType::kInt32)),
              ElementsAre(2147483647, -2147483647 - 1));
}

TEST(Tensor, WholeNumbersStayInTheirRange) {
  const Tensor wide = Tensor::of<std::int64_t>({2}, std::vector<std::int64_t>{-5, 1LL << 31});
  EXPECT_THAT(values_of<double>(wide.to(DType::kFloat64)), ElementsAre(-5.0, 2147483648.0));
  EXPECT_THAT(message_of([&] { (void)wide.to(DType::kInt32); }),
              HasSubstr("2147483648 cannot become an int32"));
  EXPECT_THAT(message_of([&] { (void)wide.to(DType::kUInt8); }),
              HasSubstr("-5 cannot become a uint8"));
  const Tensor bytes = Tensor::of<std::uint8_t>({2}, std::vector<std::uint8_t>{0, 255});
  EXPECT_THAT(values_of<std::int64_t>(bytes.to(DType::kInt64)), ElementsAre(0, 255));
  // 2^63 is a double, and the first number that is too large.
  for (const double x : {9223372036854775808.0, -9223372036854777856.0}) {
    const Tensor real = Tensor::of<double>({1}, std::vector{x});
    EXPECT_THAT(message_of([&] { (void)real.to(DType::kInt64); }),
                HasSubstr("cannot become an int64"));
  }
}

TEST(Tensor, NamesTypeAndShapeInItsErrors) {
  const Tensor tensor(Shape{2, 5});
  EXPECT_THAT(message_of([&] { tensor.data<double>(); }),
              HasSubstr("expected float64 values; got float32 [2, 5]"));
  EXPECT_THAT(message_of([&] {
                (void)tensor.reshape({3, 3});
              }),
              HasSubstr("cannot reshape float32 [2, 5] to [3, 3]"));
  EXPECT_THAT(message_of([&] {
                Tensor(Shape{5, 2}).copy_from(tensor);
              }),
              HasSubstr("cannot copy float32 [2, 5] into float32 [5, 2]"));
  EXPECT_THAT(message_of([] { (void)Tensor::of<float>({3}, std::vector<float>(2)); }),
              HasSubstr("[3] needs 3 values; got 2"));
  EXPECT_THAT(message_of([] { Tensor(Shape{std::numeric_limits<index>::max()}); }),
              HasSubstr("bytes of a tensor"));
}

TEST(Tensor, MoreThanTheMemoryHoldsIsAnError) {
  try {
    (void)Tensor::empty({std::numeric_limits<index>::max() / 4});
    FAIL() << "allocated 2^63 bytes";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kOutOfMemory);
  }
}

TEST(Shape, KnowsItsAxesAndSize) {
  const Shape shape{2, 3, 5};
  EXPECT_EQ(shape.axes(), 3);
  EXPECT_EQ(shape.size(), 30);
  EXPECT_EQ(shape[0], 2);
  EXPECT_EQ(shape[-1], 5);
  EXPECT_EQ(shape.front(), 2);
  EXPECT_EQ(shape.back(), 5);
  EXPECT_EQ(shape.with(1, 7), (Shape{2, 7, 5}));
  EXPECT_NE(shape, (Shape{2, 3}));
  EXPECT_NE((Shape{2}), (Shape{2, 1}));
}

TEST(Shape, WithoutAxesIsAScalarAndAZeroMakesItEmpty) {
  EXPECT_EQ(Shape{}.size(), 1);
  EXPECT_EQ((Shape{4, 0, 3}).size(), 0);
}

TEST(Shape, PrintsWithAndWithoutNames) {
  EXPECT_EQ(to_string(Shape{2, 5}), "[2, 5]");
  EXPECT_EQ(to_string(Shape{}), "[]");
  EXPECT_EQ(to_string(Shape{2, 5}, {"B", "T"}), "[B=2, T=5]");
  EXPECT_EQ(to_string(Shape{2, 5, 7}, {"B", "T"}), "[B=2, T=5, 7]");
}

TEST(Shape, RejectsWhatCannotBe) {
  constexpr index kHuge = std::numeric_limits<index>::max();
  EXPECT_THAT(message_of([] { Shape{2, -1}; }), HasSubstr("must not be negative; got [2, -1]"));
  EXPECT_THAT(message_of([] { Shape{1, 1, 1, 1, 1, 1, 1}; }), HasSubstr("at most 6 axes; got 7"));
  EXPECT_THAT(message_of([] { Shape{kHuge, 2}; }), HasSubstr("more values than can be counted"));
  EXPECT_THAT(message_of([] { Shape{0, kHuge, 2}; }), HasSubstr("more values than can be counted"));
  EXPECT_EQ((Shape{kHuge, 1}).size(), kHuge);
  EXPECT_THAT(message_of([] { (void)Shape{2, 3}[2]; }), HasSubstr("[2, 3] has no axis 2"));
  EXPECT_THAT(message_of([] { (void)Shape{2, 3}[-3]; }), HasSubstr("has no axis -3"));
  EXPECT_THAT(message_of([] { (void)Shape{}.back(); }), HasSubstr("[] has no axis -1"));
}

TEST(DType, NamesAndSizes) {
  EXPECT_EQ(to_string(DType::kFloat32), "float32");
  EXPECT_EQ(to_string(DType::kBFloat16), "bfloat16");
  EXPECT_EQ(to_string(DType::kInt32), "int32");
  EXPECT_EQ(to_string(DType::kFloat64), "float64");
  EXPECT_EQ(to_string(DType::kInt64), "int64");
  EXPECT_EQ(to_string(DType::kUInt8), "uint8");
  EXPECT_EQ(byte_size(DType::kInt64), 8);
  EXPECT_EQ(byte_size(DType::kUInt8), 1);
  EXPECT_EQ(byte_size(DType::kFloat32), 4);
  EXPECT_EQ(byte_size(DType::kBFloat16), 2);
  EXPECT_EQ(byte_size(DType::kInt32), 4);
  EXPECT_EQ(byte_size(DType::kFloat64), 8);
}

}  // namespace
}  // namespace fovea
