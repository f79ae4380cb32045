// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "fovea/base/error.h"
#include "fovea/tensor/tensor.h"

namespace fovea {
namespace {

using ::testing::HasSubstr;

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

}  // namespace
}  // namespace fovea
