// SPDX-License-Identifier: Apache-2.0
// The plan against a count by the mask's definition.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "fovea/attention/call.h"
#include "fovea/attention/fused/kernel_call.h"
#include "tests/attention/support/call.h"
#include "tests/isa.h"
#include "tests/support/throws.h"

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
  for (const Sequence& sequence : detail::make_sequences(attention, call.in())) {
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
  EXPECT_EQ(plan.forward_flops, plan.kept_scores * 4 * 64) << "two products of width 64";
  EXPECT_EQ(plan.tiles_masked, 0) << "no mask costs nothing";
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

TEST(AttentionPlan, SaysWhatIsPackedAndDropped) {
  const std::vector<std::int32_t> offsets = {0, 3, 3, 4};
  const Call<float> call({.T = 4, .S = 4});
  const auto plan_of = [&](const Attention<float>& attention) {
    return attention_plan(Context(1), attention, call.in());
  };
  const AttentionPlan plan =
      plan_of({.dropout = {.probability = 0.25}, .packed = {offsets, offsets}});
  EXPECT_EQ(plan.dropout, 0.25);
  EXPECT_EQ(plan.packed_sequences, 3);
  EXPECT_EQ(plan_of({.score = score::L2{}, .packed = {offsets, offsets}}).packed_sequences, 3);
  EXPECT_EQ(plan_of({}).dropout, 0);
  EXPECT_EQ(plan_of({}).packed_sequences, 0);
}

// Restricted attention (Vaswani et al. 2017, table 1): the number of scores grows as T does.
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

AttentionPlan plan_of(const Attention<float>& attention, const AttentionInputs<float>& in) {
  return attention_plan(Context(2), attention, in);
}

// One value, repeated by strides of 0.
template <class T = float>
AttentionInputs<T> repeated(const Sizes& s) {
  static const T value{1};
  return {{&value, s.B, s.T, s.H, s.D, 0, 0, 0},
          {&value, s.B, s.S, s.G, s.D, 0, 0, 0},
          {&value, s.B, s.S, s.G, s.Dv, 0, 0, 0}};
}

TEST(AttentionPlan, WhatCannotBeCountedIsAnError) {
  for (const index huge : {index{1} << 31, index{1} << 62}) {
    for (const Sizes& sizes : {Sizes{.B = huge}, Sizes{.T = huge}, Sizes{.S = huge},
                               Sizes{.H = huge}, Sizes{.H = huge, .G = huge}, Sizes{.D = huge},
                               Sizes{.B = huge, .T = 0}, Sizes{.B = 0, .T = huge, .H = huge}}) {
      EXPECT_THROWS(plan_of({}, repeated(sizes)), kShape, "may be longer than 2147483647; it is");
    }
  }
  const Sizes wide{.T = 1 << 24, .S = 1 << 24};
  EXPECT_EQ(plan_of({}, repeated(wide)).kept_scores, std::pow(2.0, 48)) << "not one by one";
  EXPECT_THROWS(plan_of({.mask = mask::Causal()}, repeated(wide)), kShape,
                "a plan looks at up to 134217728 tiles in 16777216 rows of them; this call, under "
                "the mask causal, has more");
  EXPECT_THROWS(plan_of({}, repeated({.B = 1 << 24})), kShape, "under the mask all, has more");
}

// Any sizes and strides: a plan, or an error; and each of them ends.
template <class T>
void expect_ends() {
  constexpr index kMost = std::numeric_limits<index>::max();
  const std::vector<index> of_sizes = {
      0, 1, 2, 3, 1000, index{1} << 31, index{1} << 40, index{1} << 62, kMost};
  const std::vector<index> strides = {0, 0, 0, 1, 7, -1, index{1} << 40, kMost, -kMost};
  const std::vector<Mask> masks = {{}, mask::Causal(), mask::Window(3, 5), mask::Dilated(3)};
  const std::vector<Score<float>> scores = {score::Dot(), score::Cosine(), score::L2()};
  const std::vector<Norm> norms = {norm::Softmax(), norm::None()};
  Random random(1, RandomUse::kTest);
  const auto one_of = [&](const auto& values) {
    return values[static_cast<std::size_t>(random.below(static_cast<index>(values.size())))];
  };
  index planned = 0;
  for (int n = 0; n < 5000; ++n) {
    // Half of the calls have no size that cannot be.
    const auto size = [&] { return n % 2 == 0 ? random.below(4) : one_of(of_sizes); };
    const index B = size(), S = size(), G = size(), D = size();
    AttentionInputs<T> in = repeated<T>({.B = B,
                                         .T = size(),
                                         .S = S,
                                         .H = random.below(2) == 0 ? G : size(),
                                         .G = G,
                                         .D = D,
                                         .Dv = size()});
    for (auto* view : {&in.q, &in.k, &in.v}) {
      for (index* stride : {&view->batch_stride, &view->length_stride, &view->head_stride}) {
        if (random.below(4) == 0) *stride = one_of(strides);
      }
    }
    const Attention<float> attention{
        .score = one_of(scores), .mask = one_of(masks), .norm = one_of(norms)};
    try {
      attention_plan(Context(2), attention, in);
      ++planned;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kShape) << error.what();
    }
  }
  EXPECT_GT(planned, 500);
}

TEST(AttentionPlan, EndsWhateverTheSizes) { expect_ends<float>(); }

TEST(AttentionPlan, OfBFloat16EndsWhateverTheSizes) { expect_ends<BFloat16>(); }

}  // namespace
}  // namespace fovea::testing
