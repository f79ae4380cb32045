// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "fovea/tensor/tensor.h"

namespace fovea {
namespace {

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
