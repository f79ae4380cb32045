// SPDX-License-Identifier: Apache-2.0
#include "fovea/operator/attention_call.h"

#include <gtest/gtest.h>

#include "fovea/operator/attention_call.h"
#include "tests/operator/attention_problem.h"
#include "tests/support/throws.h"

namespace fovea {
namespace {

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

// Keeps the first key, and caps what the other biases make.
struct FirstKey final : MoreParts {
  void add_masks(AttentionCall<float>& call) const override { keep(call); }
  void add_masks(AttentionCall<double>& call) const override { keep(call); }
  void add_biases(AttentionCall<float>& call) const override { add(call); }
  void add_biases(AttentionCall<double>& call) const override { add(call); }

  template <class T>
  static void keep(AttentionCall<T>& call) {
    call.keep(mask::Window(0, 0));
  }
  template <class T>
  static void add(AttentionCall<T>& call) {
    call.add(bias::Softcap<T>(2));
    if (call.settings.backward) call.values_out("more", {2, 3})[5] = T{7};
  }
};

TEST(AttentionCall, MorePartsStandBesideTheOthers) {
  const AttentionTensors tensors =
      tensors_with({{"slopes", Tensor({2}, DType::kFloat64)}, {"do", Tensor({2, 3, 2, 4})}});
  const AttentionSettings settings{
      .log_n_scale = 8, .causal = CausalKind::kBottomRight, .backward = true};
  const FirstKey more;
  const AttentionCall<float> call(settings, tensors, &more);
  EXPECT_EQ(call.attention.mask.name(), "causal & window(0, 0)");
  EXPECT_EQ(call.attention.bias.name(), "log_n_scale(8) + alibi + softcap(2)");
  ASSERT_EQ(call.out.size(), 2u);
  EXPECT_EQ(call.out[1].tensor.describe(), "float32 [2, 3]");
}

// With one key kept, log n is 0: so the scale must know of it.
TEST(AttentionCall, MoreMasksCountForThePartsThatAskWhatIsKept) {
  const AttentionTensors tensors = tensors_with({});
  const AttentionSettings settings{.log_n_scale = 8};
  const FirstKey more;
  const AttentionCall<double> call(settings, tensors, &more);
  const Sequence sequence{.queries = 3, .keys = 3};
  EXPECT_EQ(call.attention.bias.parts()[0]->apply_one({sequence, 0, 1, 1}, {}, 5.0), 0.0);
}

}  // namespace
}  // namespace fovea
