// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <limits>

#include "fovea/operator/conformance.h"

namespace fovea {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

template <class T>
NamedTensor tensor(const char* name, const Shape& shape, const std::vector<T>& values) {
  return {name, Tensor::of<T>(shape, values)};
}

TensorDifference difference(const NamedTensor& made, const NamedTensor& expected) {
  return largest_difference({&made, 1}, {&expected, 1});
}

double error(const std::vector<double>& made, const std::vector<double>& expected) {
  const Shape shape{static_cast<index>(made.size())};
  return difference(tensor("x", shape, made), tensor("x", shape, expected)).error;
}

TEST(TensorDifference, IsAShareOfTheLargestExpectedValue) {
  EXPECT_EQ(error({1, 2}, {1, 2}), 0);
  EXPECT_EQ(error({1, 2.5}, {1, 2}), 0.25);
  EXPECT_EQ(error({1, -9}, {1, -8}), 0.125);
  EXPECT_EQ(error({0.25, 0}, {0.5, 0}), 0.25) << "small values have the scale 1";
  EXPECT_EQ(error({-kInfinity, 5}, {-kInfinity, 4}), 0.25);
}

TEST(TensorDifference, WhatIsNotFiniteMustBeEqual) {
  EXPECT_EQ(error({kInfinity, kNaN}, {kInfinity, kNaN}), 0);
  for (const auto& [made, expected] : {std::pair{kInfinity, -kInfinity},
                                       {0.0, kNaN},
                                       {kNaN, 0.0},
                                       {1e300, kInfinity},
                                       {kInfinity, 1e300}}) {
    EXPECT_EQ(error({made}, {expected}), kInfinity);
  }
}

TEST(TensorDifference, WholeNumbersMustBeEqual) {
  const Shape shape{3};
  const auto made = tensor<std::int32_t>("x", shape, {1000, 2, 3});
  EXPECT_EQ(difference(made, made).error, 0);
  EXPECT_EQ(difference(made, tensor<std::int32_t>("x", shape, {1001, 2, 3})).error, kInfinity);
}

TEST(TensorDifference, SaysWhere) {
  const auto made = tensor<float>("dq", {2, 1, 3}, {0, 0, 0, 0, 0.5f, 0.75f});
  const auto found = difference(made, tensor<double>("dq", {2, 1, 3}, {0, 0, 0, 0, 0, 0}));
  EXPECT_EQ(found.error, 0.75);
  EXPECT_EQ(found.tensor + found.place, "dq[1, 0, 2]");
  EXPECT_EQ(found.problem, "");
}

TEST(TensorDifference, SaysWhatIsMissing) {
  const auto a = tensor<double>("a", {2}, {1, 2}), b = tensor<double>("b", {2}, {1, 2});
  EXPECT_NE(difference(a, b).problem, "");
  EXPECT_NE(difference(a, tensor<double>("a", {1, 2}, {1, 2})).problem, "");
  const std::vector<NamedTensor> both = {a, b};
  EXPECT_EQ(largest_difference(both, {&b, 1}).problem, "") << "a is not expected";
}

}  // namespace
}  // namespace fovea
