// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fovea/attention/mask/band.h"
#include "fovea/nn/block.h"
#include "tests/nn/support.h"
#include "tests/support/throws.h"

namespace fovea {
namespace {

constexpr index N = 6, M = 5, C = 4, kSource = 3;
const std::int32_t kOffsets[] = {0, 2, N}, kSourceOffsets[] = {0, 3, M};

DecoderBlockOptions block_options(NormPosition position = NormPosition::kPre) {
  DecoderBlockOptions o;
  o.attention.width = o.cross.width = C;
  o.attention.heads = o.cross.heads = 2;
  o.attention.mask = mask::Causal();
  o.cross.context = kSource;
  o.feed_forward = {.width = C, .hidden = 6, .activation = LayerActivation::kGelu};
  o.residual = {.norm = {.width = C}, .position = position};
  return o;
}

template <class T>
Variable forward(Tape& tape, const DecoderBlock& block, const std::vector<T>& x,
                 const std::vector<T>& source, std::span<HeadStatistics> seen = {}) {
  const PackedRows rows = lay_out_rows(tape, N, {kOffsets, 3}, {}),
                   of_source = lay_out_rows(tape, M, {kSourceOffsets, 3}, {});
  const AttentionContext context =
      block.context_of(tape, tape.constant(Rows<const T>(source.data(), M, kSource)), of_source);
  return block.forward(tape, tape.constant(Rows<const T>(x.data(), N, C)), context,
                       {rows, {1, 2, 3}, seen});
}

// Each of the three parts in its place: by ops and layers alone.
TEST(DecoderBlock, IsThreePartsOneAfterAnother) {
  ParameterSet set({});
  const DecoderBlock block(block_options(), ParameterScope(set));
  randomise(set);
  const auto x = noise(N * C), source = noise(M * kSource, 1);
  const auto y = output_of([&](Tape& t) { return forward(t, block, x, source); });
  const auto parts = output_of([&](Tape& t) {
    const PackedRows rows = lay_out_rows(t, N, {kOffsets, 3}, {}),
                     of_source = lay_out_rows(t, M, {kSourceOffsets, 3}, {});
    const auto p = [&](const char* name) { return t.parameter(*set.find(name)); };
    const auto normed = [&](Variable v, const std::string& name) {
      return layer_norm(t, v, p((name + ".weight").c_str()), p((name + ".bias").c_str()));
    };
    Variable v = t.constant(Rows<const float>(x.data(), N, C));
    const Variable s = t.constant(Rows<const float>(source.data(), M, kSource));
    v = add(t, v, block.attention().forward(t, normed(v, "attention_norm"), rows));
    v = add(t, v, block.cross().forward(t, normed(v, "cross_norm"), rows, s, of_source));
    const Variable h = linear(t, normed(v, "feed_forward_norm"), p("feed_forward.in.weight"),
                              p("feed_forward.in.bias"), Activation::kGelu);
    return add(t, v, linear(t, h, p("feed_forward.out.weight"), p("feed_forward.out.bias")));
  });
  EXPECT_THAT(y, testing::Pointwise(testing::FloatNear(1e-6f), parts));
}

TEST(DecoderBlock, IsTheIdentityWhereWhatItAddsIsZero) {
  ParameterSet set({});
  const DecoderBlock block(block_options(), ParameterScope(set));
  for (const char* name : {"attention.out.weight", "cross.out.weight", "feed_forward.out.weight"}) {
    set.find(name)->value.fill_zero();
  }
  const auto x = noise(N * C), source = noise(M * kSource, 1);
  EXPECT_EQ(output_of([&](Tape& t) { return forward(t, block, x, source); }), x);
}

TEST(DecoderBlock, ObservesBothAttentions) {
  ParameterSet set({});
  const DecoderBlock block(block_options(), ParameterScope(set));
  const auto x = noise(N * C), source = noise(M * kSource, 1);
  std::vector<HeadStatistics> seen(2);
  output_of([&](Tape& t) { return forward(t, block, x, source, seen); });
  EXPECT_EQ(seen[0].queries, N);
  EXPECT_EQ(seen[1].queries, N);
  EXPECT_NE(seen[0].entropy, seen[1].entropy);
  seen.resize(1);
  EXPECT_THROWS(output_of([&](Tape& t) { return forward(t, block, x, source, seen); }), kShape,
                "1 statistics for 2 attentions");
}

class EveryDecoderBlock : public testing::TestWithParam<NormPosition> {};

TEST_P(EveryDecoderBlock, GradientIsThatOfTheForward) {
  auto set = float64_set();
  DecoderBlockOptions o = block_options(GetParam());
  o.attention.dropout = o.cross.dropout = o.residual.dropout = 0.2;
  const DecoderBlock block(o, ParameterScope(set));
  const auto x = noise<double>(N * C), source = noise<double>(M * kSource, 1);
  expect_gradients(set, [&](Tape& tape) { return forward(tape, block, x, source); });
}

INSTANTIATE_TEST_SUITE_P(Positions, EveryDecoderBlock,
                         testing::Values(NormPosition::kPre, NormPosition::kPost));

}  // namespace
}  // namespace fovea
