// SPDX-License-Identifier: Apache-2.0
#include "fovea/task/attention_call.h"

#include <gtest/gtest.h>

#include "fovea/task/attention_parts.h"
#include "tests/support/throws.h"

namespace fovea {
namespace {

AttentionTensors tensors_with(const std::vector<NamedTensor>& more) {
  std::vector<NamedTensor> all = {
      {"q", Tensor({2, 3, 2, 8})}, {"k", Tensor({2, 5, 1, 8})}, {"v", Tensor({2, 5, 1, 4})}};
  for (const NamedTensor& named : more) all.push_back(named);
  return {all, attention_tensor_specs(), "in.npz"};
}

TEST(AttentionCall, GradientsOfPartsAreWrittenWhereAskedFor) {
  const AttentionTensors tensors =
      tensors_with({{"slopes", Tensor({2}, DType::kFloat64)}, {"do", Tensor({2, 3, 2, 4})}});
  const AttentionSettings forward, both{.backward = true};
  EXPECT_TRUE(AttentionCall<float>(forward, tensors).out.empty());
  const AttentionCall<float> call(both, tensors);
  ASSERT_EQ(call.out.size(), 1u);
  EXPECT_EQ(call.out[0].name, "dslopes");
  EXPECT_EQ(call.out[0].tensor.describe(), "float32 [2]");
  EXPECT_EQ(call.attention.bias.name(), "alibi");
}

TEST(AttentionCall, WhatDoesNotFitIsSaidBeforeItIsTaken) {
  const index many = index{1} << 22;
  const AttentionTensors tensors({{"q", Tensor({1, many, 1, 1})},
                                  {"k", Tensor({1, many, 1, 1})},
                                  {"v", Tensor({1, many, 1, 1})}},
                                 attention_tensor_specs(), "in.npz");
  const AttentionSettings settings{.observe = "weights"};
  EXPECT_THROWS(AttentionCall<float>(settings, tensors), kOutOfMemory,
                "attention: weights [1, 1, 4194304, 4194304] would take 64.0 TiB");
}

}  // namespace
}  // namespace fovea
