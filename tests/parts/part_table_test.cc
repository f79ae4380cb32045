// SPDX-License-Identifier: Apache-2.0
#include "fovea/parts/part_table.h"

#include <gmock/gmock.h>

#include <set>

#include "tests/support/throws.h"

namespace fovea {
namespace {

using testing::ElementsAre;

constexpr AttentionSizes kSizes{2, 5, 7, 4, 2, 6, 3};  // B T S H G D Dv

// The tensor of a part, in memory that is large enough.
template <class T>
PartViews<T> views_of(const AttentionPart& part, const std::vector<T>& memory) {
  const std::vector<index> shape = part_shape(part, kSizes, 4);
  if (shape.size() == 4) {
    return {.scores = ScoreView<const T>::contiguous(memory.data(), shape[0], shape[1], shape[2],
                                                     shape[3])};
  }
  return {.values = {memory.data(), shape.size() == 1 ? 1 : shape[0], shape.back()}};
}

TEST(PartTable, NamesEachTensorOnce) {
  std::set<std::string_view> names;
  for (const AttentionPart& part : attention_parts()) {
    EXPECT_EQ(part.tensor.empty(), part.axes.empty()) << part.tensor;
    if (part.tensor.empty()) continue;
    EXPECT_TRUE(names.insert(part.tensor).second) << part.tensor;
  }
  EXPECT_LE(attention_parts().size(), kMostAttentionParts);
}

TEST(PartTable, SaysAllThatAPartIs) {
  std::set<std::string_view> positions;
  for (const AttentionPart& part : attention_parts()) {
    SCOPED_TRACE(part.formula);
    EXPECT_FALSE(part.formula.empty());
    EXPECT_LE(part.range.least, 0.1) << "tests draw from .1 to 1.1";
    EXPECT_GE(part.range.most, 1.1);
    if (part.position.empty()) continue;
    EXPECT_TRUE(positions.insert(part.position).second) << part.position;
    EXPECT_NE(part.start, PartStart::kNone) << "a model has to start from something";
    EXPECT_FALSE(part.source.authors.empty());
    EXPECT_GT(part.source.year, 1900) << "help lists the newest position first";
  }
}

// Each tensor alone becomes one part of the call, or a score, or the sink.
TEST(PartTable, MakesSomethingOfEveryTensor) {
  const std::vector<float> memory(4096);
  for (std::size_t n = 0; n < attention_parts().size(); ++n) {
    const AttentionPart& part = attention_parts()[n];
    if (part.tensor.empty()) continue;
    SCOPED_TRACE(part.tensor);
    PartTensors<float> tensors{};
    tensors[n] = views_of(part, memory);
    AttentionVariant variant;
    variant.score = part.score.value_or(variant.score);
    const auto attention = make_attention<float>(variant, tensors);
    const std::size_t made = attention.bias.parts().size() + attention.values.parts().size() +
                             (attention.sink.logits.empty() ? 0 : 1) +
                             (name_of(attention.score) == "dot" ? 0 : 1);
    EXPECT_EQ(made, 1u);
  }
}

TEST(PartTable, FindsARowByItsTensor) {
  const auto parts = attention_parts();
  EXPECT_EQ(parts[part_number("t5")].tensor, "t5");
  EXPECT_THROWS(part_number("t6"), kOptionValue, "no tensor named t6");
  EXPECT_THROWS(part_number(""), kOptionValue, "no tensor named");
}

TEST(PartTable, TellsTheShapeOfATensor) {
  const auto shape = [](std::string_view tensor, index own) {
    return part_shape(attention_parts()[part_number(tensor)], kSizes, own);
  };
  EXPECT_THAT(shape("slopes", 9), ElementsAre(4));
  EXPECT_THAT(shape("t5", 8), ElementsAre(8, 4));
  EXPECT_THAT(shape("shaw_k", 3), ElementsAre(7, 6));
  EXPECT_THAT(shape("shaw_v", 3), ElementsAre(7, 3));
  EXPECT_THAT(shape("score_w", 0), ElementsAre(4, 12));
  EXPECT_THAT(shape("bias", 0), ElementsAre(2, 4, 5, 7));
}

// Every tensor of the table at once, in the order of the table; only one score can be chosen.
template <class T>
void expect_all_parts() {
  const std::vector<T> memory(4096);
  PartTensors<T> tensors{};
  for (std::size_t n = 0; n < attention_parts().size(); ++n) {
    const AttentionPart& part = attention_parts()[n];
    if (part.tensor.empty() || part.tensor == "score_w") continue;
    tensors[n] = views_of(part, memory);
  }
  const auto attention = make_attention<T>({.score = AttentionScoreKind::kAdditive,
                                            .log_n_scale = 8,
                                            .softcap = 2,
                                            .rotary = RotaryPairs::kHalves},
                                           tensors);
  EXPECT_EQ(name_of(attention.score), "additive");
  EXPECT_THAT(
      attention.bias.name(),
      testing::ContainsRegex(
          "shaw.* \\+ log_n_scale\\(8\\) \\+ softcap\\(2\\) \\+ .* \\+ alibi \\+ t5 \\+ kerple"));
  EXPECT_EQ(attention.values.parts().size(), 1u);
  EXPECT_EQ(attention.sink.logits.size, 4);
  EXPECT_EQ(attention.rotary.pairs, RotaryPairs::kHalves);
}

TEST(PartTable, MakesACallOfEveryPart) {
  expect_all_parts<float>();
  expect_all_parts<double>();
}

TEST(PartTable, MakesAPlainCallOfNothing) {
  const auto attention = make_attention<float>({}, PartTensors<float>{});
  EXPECT_EQ(name_of(attention.score), "dot");
  EXPECT_TRUE(attention.bias.empty());
  EXPECT_TRUE(attention.values.empty());
  EXPECT_TRUE(attention.sink.logits.empty());
  EXPECT_TRUE(needs_lse(attention.norm));
}

TEST(PartTable, RefusesTheTensorOfAnotherScore) {
  const std::vector<float> memory(64);
  PartTensors<float> tensors{};
  tensors[part_number("score_v")].values = {memory.data(), 4, 6};
  EXPECT_THROWS(make_attention<float>({}, tensors), kUsage,
                "score_v is there, and the score is dot");
}

}  // namespace
}  // namespace fovea
