// SPDX-License-Identifier: Apache-2.0
// The plan against a count by the mask's definition.
#include <gtest/gtest.h>

#include <algorithm>

#include "fovea/attention/kernel.h"
#include "fovea/attention/sequences.h"
#include "tests/attention/call.h"
#include "tests/isa.h"

namespace fovea::testing {
namespace {

struct Count {
  index tiles = 0, kept = 0, masked = 0;
  double scores = 0;
};

// Tiles of a sequence and head, each looked at score by score.
Count count(const Mask& mask, const Sequence& sequence) {
  Count count;
  for (index query = 0; query < sequence.queries; query += kLaneTile) {
    for (index key = 0; key < sequence.keys; key += kRowBlock) {
      const index queries = std::min(kLaneTile, sequence.queries - query);
      const index keys = std::min(kRowBlock, sequence.keys - key);
      index kept = 0;
      for (index i = query; i < query + queries; ++i) {
        for (index j = key; j < key + keys; ++j) kept += mask.keeps({sequence, 0, i, j}) ? 1 : 0;
      }
      ++count.tiles;
      count.kept += kept > 0 ? 1 : 0;
      count.masked += kept > 0 && kept < queries * keys ? 1 : 0;
      count.scores += kept > 0 ? static_cast<double>(kept) : 0;
    }
  }
  return count;
}

void expect_plan(const Mask& mask, index T, index S) {
  SCOPED_TRACE(mask.name());
  const Call<float> call({.B = 2, .T = T, .S = S, .H = 3, .G = 1, .D = 8, .Dv = 16});
  const Attention<float> attention{.mask = mask};
  const AttentionPlan plan = attention_plan(Context(1), attention, call.in());
  Count total;
  for (const Sequence& sequence : make_sequences(attention, call.in())) {
    const Count one = count(mask, sequence);
    total.tiles += 3 * one.tiles;
    total.kept += 3 * one.kept;
    total.masked += 3 * one.masked;
    total.scores += 3 * one.scores;
  }
  EXPECT_EQ(plan.tiles, total.tiles);
  EXPECT_EQ(plan.tiles_kept, total.kept);
  // A band's first and last tile may be cut by its range to what is kept, and then need no mask.
  EXPECT_LE(plan.tiles_masked, total.masked);
  EXPECT_GE(plan.kept_scores, total.scores);
  EXPECT_LE(plan.kept_scores, static_cast<double>(total.kept * kLaneTile * kRowBlock));
  EXPECT_EQ(plan.forward_flops, plan.kept_scores * 2 * (8 + 16));
  EXPECT_EQ(plan.backward_flops, plan.kept_scores * (6 * 8 + 4 * 16));
  EXPECT_GT(plan.scratch_bytes, 0);
  EXPECT_GT(attention_plan(Context(2), attention, call.in()).scratch_bytes, plan.scratch_bytes);
}

TEST(AttentionPlan, KeptTilesAreThoseOfTheDefinition) {
  const std::int32_t lengths[] = {130, 0};
  for (const auto& [T, S] : {std::pair<index, index>{300, 300}, {130, 400}, {400, 130}, {1, 97}}) {
    expect_plan({}, T, S);
    expect_plan(mask::Causal(), T, S);
    expect_plan(mask::Causal(Align::kTopLeft), T, S);
    expect_plan(mask::Window(64, 0), T, S);
    expect_plan(mask::Window(3, 70), T, S);
  }
  expect_plan(mask::KeyLengths({lengths, 2}) & mask::Causal(), 200, 130);
}

TEST(AttentionPlan, FullAttentionCountsEveryScore) {
  const Call<float> call({.B = 2, .T = 100, .S = 200, .H = 3, .G = 1, .D = 64, .Dv = 64});
  const AttentionPlan plan = attention_plan<float>(Context(1), {}, call.in());
  EXPECT_EQ(plan.kept_scores, 2.0 * 3 * 100 * 200);
  EXPECT_EQ(plan.forward_flops, plan.kept_scores * 4 * 64) << "spec A19";
  EXPECT_EQ(plan.tiles_masked, 0) << "spec M11: no mask costs nothing";
}

TEST(AttentionPlan, SaysWhatWouldRun) {
  const float slope = 1;
  float entropy[4];
  const Call<float> call({.T = 4, .S = 4});
  const Attention<float> attention{
      .bias = bias::Alibi<float>({&slope, 1}),
      .mask = mask::Causal() & mask::Window(2, 0),
      .observe = observe::Entropy<float>(RowView<float>::contiguous(entropy, 1, 1, 4))};
  for_each_isa([&] {
    const AttentionPlan plan = attention_plan(Context(1), attention, call.in());
    EXPECT_EQ(plan.kernel, "fused float32");
    EXPECT_EQ(plan.isa, isa_name(current_isa()));
    EXPECT_EQ(plan.mask, "causal & window(2, 0)");
    EXPECT_EQ(plan.bias, "alibi");
    EXPECT_EQ(plan.values, "none");
    EXPECT_EQ(plan.observe, "entropy");
  });
  const Call<double> twice({.T = 4, .S = 4});
  EXPECT_EQ(attention_plan<double>(Context(1), {}, twice.in()).kernel, "fused float64");
}

// Restricted attention: what is computed grows as T does (spec A20).
TEST(AttentionPlan, WindowsAreLinear) {
  const auto scores = [](index T) {
    const View<const float> any{nullptr, 1, T, 1, 0, 0, 0, 0};
    float value = 0;
    View<const float> view = any;
    view.data = &value;
    view.width = 1;
    const Attention<float> attention{.mask = mask::Window(64, 64)};
    return attention_plan(Context(1), attention, {view, view, view}).kept_scores;
  };
  EXPECT_NEAR(scores(64000) / scores(8000), 8, 0.1);
}

}  // namespace
}  // namespace fovea::testing
