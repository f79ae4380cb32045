// SPDX-License-Identifier: Apache-2.0
#include "fovea/operator/attention_call.h"

#include <gtest/gtest.h>

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

std::string mask_of(const AttentionSettings& settings, const std::vector<NamedTensor>& more = {}) {
  const AttentionTensors tensors = tensors_with(more);
  return AttentionCall<float>(settings, tensors).attention.mask.name();
}

Tensor ints(const Shape& shape, const std::vector<std::int32_t>& values) {
  return Tensor::of<std::int32_t>(shape, values);
}

TEST(AttentionParts, SettingsBecomeMasks) {
  EXPECT_EQ(mask_of({}), mask::All().name());
  EXPECT_EQ(mask_of({.causal = CausalKind::kTopLeft}), "causal(top-left)");
  EXPECT_EQ(mask_of({.causal = CausalKind::kBottomRight, .window = "3,0"}),
            "causal & window(3, 0)");
  EXPECT_EQ(mask_of({.window = "3,-1", .dilation = 4}), "dilated(4) & window(12, -1)");
  EXPECT_EQ(mask_of({.dilation = 4}), "dilated(4) & window(-1, -1)");
  EXPECT_EQ(mask_of({.strided = 3}), "strided(3)");
}

TEST(AttentionParts, TensorsBecomeMasks) {
  const Tensor lengths = ints({2}, {1, 2});
  EXPECT_EQ(mask_of({}, {{"query_lengths", lengths}, {"key_lengths", lengths}}),
            "query_lengths & key_lengths");
  EXPECT_EQ(mask_of({}, {{"keep", Tensor({1, 1, 1, 5}, DType::kUInt8)},
                         {"drop", Tensor({2, 2, 3, 5}, DType::kUInt8)}}),
            "keep & drop");
  EXPECT_EQ(mask_of({}, {{"query_segments", Tensor({2, 3}, DType::kInt32)},
                         {"key_segments", Tensor({2, 5}, DType::kInt32)}}),
            "segments");
}

TEST(AttentionParts, WindowsOfHeadsCountWhatTheDilationKeeps) {
  const AttentionTensors tensors = tensors_with({{"window", ints({2, 2}, {2, -1, 0, 2147483647})}});
  const AttentionSettings settings{.dilation = 3};
  const AttentionCall<float> call(settings, tensors);
  const Sequence sequence{.queries = 100, .keys = 100};
  const auto keeps = [&](index head, index distance) {
    return call.attention.mask.keeps({sequence, head, 50, 50 + distance});
  };
  EXPECT_TRUE(keeps(0, -6));
  EXPECT_FALSE(keeps(0, -9));
  EXPECT_TRUE(keeps(0, 48));
  EXPECT_FALSE(keeps(0, 1));
  EXPECT_FALSE(keeps(1, -3));
  EXPECT_TRUE(keeps(1, 48));
}

TEST(AttentionParts, ScoresAndRotaryAreChosen) {
  const AttentionTensors tensors = tensors_with({{"score_w", Tensor({2, 16})}});
  const AttentionSettings settings{.score = AttentionScoreKind::kConcat,
                                   .rotary = RotaryPairs::kHalves};
  const AttentionCall<float> call(settings, tensors);
  EXPECT_EQ(name_of(call.attention.score), "concat");
  EXPECT_EQ(call.attention.rotary.pairs, RotaryPairs::kHalves);
  const AttentionSettings dot;
  EXPECT_THROWS(AttentionCall<float>(dot, tensors), kUsage,
                "attention: score_w is there, and the score is dot");
}

TEST(AttentionParts, RelativePositionsStandBeforeTheCap) {
  const AttentionTensors tensors = tensors_with(
      {{"slopes", Tensor({2})}, {"shaw_v", Tensor({5, 4})}, {"shaw_k", Tensor({5, 8})}});
  const AttentionSettings settings{.softcap = 2, .order = ShawOrder::kKeyMinusQuery};
  const AttentionCall<float> call(settings, tensors);
  EXPECT_EQ(call.attention.bias.name(), "shaw(j-i) + softcap(2) + alibi");
  EXPECT_EQ(call.attention.values.name(), "shaw(j-i)");
  const AttentionSettings unsaid;
  EXPECT_EQ(AttentionCall<float>(unsaid, tensors).attention.values.name(), "shaw");
}

TEST(AttentionParts, OffsetsPackTheBatch) {
  const Tensor offsets = ints({3}, {0, 1, 3});
  const AttentionTensors tensors =
      tensors_with({{"query_offsets", offsets}, {"key_offsets", offsets}});
  const AttentionSettings settings;
  const AttentionCall<double> call(settings, tensors);
  EXPECT_EQ(call.attention.packed.query_offsets.size, 3);
  EXPECT_EQ(call.attention.packed.key_offsets[2], 3);
}

TEST(AttentionParts, WhatIsObservedIsWritten) {
  const AttentionTensors tensors = tensors_with({});
  const AttentionSettings settings{.observe = "weights,max,distance,entropy"};
  const AttentionCall<float> call(settings, tensors);
  EXPECT_EQ(call.attention.observe.name(), "rows(0, 3) + maximum + distance + entropy");
  ASSERT_EQ(call.out.size(), 4u);
  EXPECT_EQ(call.out[0].name, "weights");
  EXPECT_EQ(call.out[0].tensor.describe(), "float32 [2, 2, 3, 5]");
}

TEST(AttentionParts, WhatIsObservedHasItsShapeAndType) {
  const AttentionTensors tensors = tensors_with({});
  const AttentionSettings settings{.observe = "topk=4,column_mass,rows=1:3,dropout_keep"};
  const AttentionCall<float> call(settings, tensors);
  std::vector<std::string> out;
  for (const NamedTensor& named : call.out)
    out.push_back(named.name + " " + named.tensor.describe());
  EXPECT_EQ(out, (std::vector<std::string>{
                     "topk_index int32 [2, 2, 3, 4]", "topk_weight float32 [2, 2, 3, 4]",
                     "column_mass float32 [2, 2, 5]", "rows float32 [2, 2, 2, 5]",
                     "dropout_keep uint8 [2, 2, 3, 5]"}));
}

TEST(AttentionParts, NamesWhatMakesNoSense) {
  const AttentionTensors tensors = tensors_with({});
  const auto call = [&](const AttentionSettings& settings) {
    AttentionCall<float>(settings, tensors);
  };
  EXPECT_THROWS(call({.observe = "entrpy"}), kOptionValue, "--observe: expected some of: entropy");
  EXPECT_EQ(error_of([&] { call({.observe = "entrpy"}); })->hint(), "did you mean entropy?");
  EXPECT_THROWS(call({.observe = "topk"}), kOptionValue, "got 'topk'");
  EXPECT_EQ(error_of([&] { call({.observe = "topk"}); })->hint(),
            "write --observe topk=8, for example");
  EXPECT_THROWS(call({.observe = "topk=0"}), kOptionValue, "--observe: topk='0'");
  EXPECT_THROWS(call({.observe = "max=2"}), kOptionValue, "got 'max=2'");
  for (const char* rows : {"rows=0:4", "rows=2:1", "rows=-1:2", "rows=1", "rows=a:b"}) {
    EXPECT_THROWS(call({.observe = rows}), kOptionValue, "--observe: rows=");
  }
  EXPECT_THROWS(call({.backward = true}), kInputFormat, "in.npz: the tensor do is missing");
  EXPECT_THROWS(call({.scale = "nan"}), kOptionValue, "--scale: ");
  EXPECT_THROWS(call({.dilation = 0}), kOptionValue, "--dilation: 0");
}

}  // namespace
}  // namespace fovea
