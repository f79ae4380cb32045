// SPDX-License-Identifier: Apache-2.0
#include "fovea/attention/lowered_call.h"

#include <gtest/gtest.h>

#include <variant>

#include "tests/attention/support/problem.h"
#include "tests/attention/support/table.h"

namespace fovea::testing {
namespace {

const Sizes kSizes{.B = 2, .T = 3, .S = 4, .H = 2, .G = 1, .D = 4, .Dv = 3};

detail::Kernel kernel_of(const Attention<float>& attention) {
  const Call<float> call(kSizes);
  const auto in = call.in();
  return detail::LoweredCall<float>::shape(attention, in).backward_kernel();
}

Attention<float> unnormalised(const Mask& mask = {}) {
  return {.mask = mask, .norm = norm::None()};
}

TEST(LoweredCall, IsLinearWhereNothingKnowsAScoreByItself) {
  const std::int32_t lengths[] = {3, 2};
  EXPECT_EQ(kernel_of(unnormalised()), detail::Kernel::kLinear);
  EXPECT_EQ(kernel_of(unnormalised(mask::Causal() & mask::lengths({lengths, 2}))),
            detail::Kernel::kLinear);
  EXPECT_EQ(kernel_of({.score = score::Cosine(), .norm = norm::None()}), detail::Kernel::kLinear);
  EXPECT_EQ(kernel_of({}), detail::Kernel::kFused);
  EXPECT_EQ(kernel_of(unnormalised(mask::Window(1, 1))), detail::Kernel::kFused);
  EXPECT_EQ(kernel_of({.norm = norm::Sigmoid()}), detail::Kernel::kFused);
  EXPECT_EQ(kernel_of({.score = score::L2(), .norm = norm::None()}), detail::Kernel::kFused);
  EXPECT_EQ(kernel_of({.bias = bias::Softcap<float>(2), .norm = norm::None()}),
            detail::Kernel::kFused);
  EXPECT_EQ(kernel_of({.norm = norm::None(), .dropout = {.probability = 0.1}}),
            detail::Kernel::kFused);
}

TEST(LoweredCall, TheLinearKernelKnowsNoWeight) {
  Call<float> call(kSizes);
  const Attention<float> attention = unnormalised();
  const auto in = call.in();
  const auto lowered = detail::LoweredCall<float>::shape(attention, in);
  EXPECT_EQ(lowered.forward_kernel(call.out()), detail::Kernel::kLinear);
  call.want_weights();
  EXPECT_EQ(lowered.forward_kernel(call.out()), detail::Kernel::kFused);
}

TEST(LoweredCall, APlainDotProductIsLeftAsItIs) {
  const Call<float> call(kSizes);
  const Attention<float> attention{.mask = mask::Causal()};
  const auto in = call.in();
  const detail::LoweredCall<float> lowered(Context(1), attention, in);
  EXPECT_EQ(&lowered.attention(), &attention);
  EXPECT_EQ(lowered.in().q.data, in.q.data);
  EXPECT_EQ(lowered.made_bytes(), 0);
  EXPECT_EQ(lowered.sequences().size(), 2u);
}

// Whatever the score, the kernels see a dot product without rotary positions, with the scale of the
// score; and the shape for a plan is that of the call.
TEST(LoweredCall, EveryScoreBecomesADotProduct) {
  for (const auto& row : score_table<float>()) {
    SCOPED_TRACE(row.name);
    const Call<float> call(kSizes);
    PartData<float> parts;
    Attention<float> attention{.bias = bias::Softcap<float>(30)};
    row.set(attention, parts, kSizes.D);
    const auto in = call.in();
    const detail::LoweredCall<float> lowered(Context(1), attention, in);
    const auto shape = detail::LoweredCall<float>::shape(attention, in);
    for (const auto* seen : {&lowered, &shape}) {
      EXPECT_TRUE(std::holds_alternative<score::Dot>(seen->attention().score));
      EXPECT_EQ(seen->attention().rotary.pairs, RotaryPairs::kNone);
      const index width = seen->in().q.width;
      EXPECT_EQ(detail::scale_of(seen->attention().score, width),
                detail::scale_of(attention.score, kSizes.D));
      EXPECT_EQ(seen->in().q.width, lowered.in().k.width);
    }
    EXPECT_EQ(shape.in().q.width, lowered.in().q.width);
    EXPECT_EQ(shape.made_bytes(), lowered.made_bytes());
    const bool makes = detail::makes_score(lowered.attention().bias);
    EXPECT_EQ(lowered.attention().bias.parts().size(), makes ? 2u : 1u);
  }
}

}  // namespace
}  // namespace fovea::testing
