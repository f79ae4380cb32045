// SPDX-License-Identifier: Apache-2.0
#include "fovea/nn/block.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fovea/attention/mask/band.h"
#include "tests/nn/support.h"

namespace fovea {
namespace {

constexpr index N = 6, C = 4;
const std::int32_t kOffsets[] = {0, 2, N};

BlockOptions block_options(index width, index hidden, index heads) {
  BlockOptions o;
  o.attention.width = width;
  o.attention.heads = heads;
  o.feed_forward = {.width = width, .hidden = hidden, .activation = LayerActivation::kGelu};
  o.residual.norm.width = width;
  return o;
}

template <class T>
Variable forward(Tape& tape, const Block& block, const std::vector<T>& x) {
  return block.forward(tape, tape.constant(Rows<const T>(x.data(), N, C)),
                       lay_out_rows(tape, N, {kOffsets, 3}, {}), {1, 2, 3});
}

TEST(Block, HasTheParametersOfItsFormula) {
  ParameterSet set({.memory = ParameterMemory::kShapesOnly});
  const Block block(block_options(128, 512, 4), ParameterScope(set));
  EXPECT_EQ(set.size(), 198272);
}

// Spec L6: where what is added is zero, the residual connection is the identity.
TEST(Block, IsTheIdentityWhereWhatItAddsIsZero) {
  ParameterSet set({});
  const Block block(block_options(C, 8, 2), ParameterScope(set));
  for (const char* name : {"attention.out.weight", "feed_forward.out.weight"}) {
    set.find(name)->value.fill_zero();
  }
  const auto x = noise(N * C);
  EXPECT_EQ(output_of([&](Tape& t) { return forward(t, block, x); }), x);
}

// Spec L9: LN(attention(x) + x), without biases.
TEST(AttentionBlock, IsTheBlockOfS0) {
  ParameterSet set({});
  MultiHeadAttentionOptions o;
  o.width = C;
  o.heads = 2;
  o.head_dim = 3;
  o.bias = Biases::kNone;
  const AttentionBlock block(o, {.norm = {.width = C}, .position = NormPosition::kPost},
                             ParameterScope(set));
  const auto x = noise(N * C);
  const auto y = output_of(
      [&](Tape& t) { return block.forward(t, t.constant(Rows<const float>(x.data(), N, C)), {}); });
  const auto z = output_of([&](Tape& t) {
    const Variable rows = t.constant(Rows<const float>(x.data(), N, C));
    return layer_norm(t, add(t, rows, block.attention().forward(t, rows, {})), {}, {});
  });
  EXPECT_THAT(y, testing::Pointwise(testing::FloatNear(1e-6f), z));
}

// x + after(f(norm(x))), twice.
TEST(Block, ASandwichHasNormsBeforeAndBehindEachPart) {
  ParameterSet set({});
  BlockOptions o = block_options(C, 8, 2);
  o.residual.position = NormPosition::kSandwich;
  o.residual.norm.kind = NormKind::kRms;
  const Block block(o, ParameterScope(set));
  for (const char* name : {"attention_norm.weight", "attention_norm.after.weight",
                           "feed_forward_norm.weight", "feed_forward_norm.after.weight"}) {
    const auto gains = noise(C);
    ASSERT_NE(set.find(name), nullptr) << name;
    std::copy(gains.begin(), gains.end(), set.find(name)->value.data<float>());
  }
  const auto x = noise(N * C);
  const auto y = output_of([&](Tape& t) { return forward(t, block, x); });
  const auto z = output_of([&](Tape& t) {
    const auto p = [&](const char* name) { return t.parameter(*set.find(name)); };
    const auto norm = [&](Variable rows, const char* name) { return rms_norm(t, rows, p(name)); };
    const PackedRows rows = lay_out_rows(t, N, {kOffsets, 3}, {});
    Variable h = t.constant(Rows<const float>(x.data(), N, C));
    const Variable attended = block.attention().forward(t, norm(h, "attention_norm.weight"), rows);
    h = add(t, h, norm(attended, "attention_norm.after.weight"));
    const Variable inner =
        linear(t, norm(h, "feed_forward_norm.weight"), p("feed_forward.in.weight"),
               p("feed_forward.in.bias"), Activation::kGelu);
    const Variable fed = linear(t, inner, p("feed_forward.out.weight"), p("feed_forward.out.bias"));
    return add(t, h, norm(fed, "feed_forward_norm.after.weight"));
  });
  EXPECT_THAT(y, testing::Pointwise(testing::FloatNear(1e-5f), z));
}

class EveryBlock : public testing::TestWithParam<NormPosition> {};

TEST_P(EveryBlock, GradientIsThatOfTheForward) {
  auto set = float64_set();
  BlockOptions o = block_options(C, 6, 2);
  o.attention.mask = mask::Causal();
  o.attention.dropout = o.residual.dropout = 0.2;
  o.residual.position = GetParam();
  const Block block(o, ParameterScope(set));
  const auto x = noise<double>(N * C);
  expect_gradients(set, [&](Tape& tape) { return forward(tape, block, x); });
}

INSTANTIATE_TEST_SUITE_P(Positions, EveryBlock,
                         testing::Values(NormPosition::kPre, NormPosition::kPost,
                                         NormPosition::kSandwich));

}  // namespace
}  // namespace fovea
