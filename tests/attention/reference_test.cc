// SPDX-License-Identifier: Apache-2.0
#include "fovea/attention/reference.h"

#include <gtest/gtest.h>

#include "tests/attention/support/golden.h"
#include "tests/attention/support/gradients.h"

namespace fovea::testing {
namespace {

TEST(ReferenceAttention, MatchesGoldenValues) {
  golden::expect_forward<double>(Method::kReference);
  golden::expect_forward<float>(Method::kReference);
}

TEST(ReferenceAttention, MatchesGoldenGradients) {
  golden::expect_backward<double>(Method::kReference);
  golden::expect_backward<float>(Method::kReference);
}

// The derivative of softmax, by central differences of the forward, for every input at once:
// masked, grouped, dropped out, with a bias.
TEST(ReferenceAttention, GradientsAreThoseOfTheForward) {
  Call<double> call({.B = 2, .T = 4, .S = 5, .H = 2, .G = 1, .D = 3, .Dv = 2}, 5);
  const std::vector<double> slopes = {0.3, -0.2};
  const Attention<double> attention{.bias = bias::Alibi<double>({slopes.data(), 2}),
                                    .mask = mask::Causal(),
                                    .dropout = {.probability = 0.25, .seed = 9}};
  expect_gradients(call, attention, {}, Method::kReference, 1e-9);
}

// A row of exactly one key copies it; a row of none is empty (spec section 3).
TEST(ReferenceAttention, OneKeyIsCopiedAndNoKeyGivesNothing) {
  Call<double> call({.T = 2, .S = 1, .D = 3, .Dv = 3}, 1);
  call.forward({.mask = mask::Causal(Align::kTopLeft) & mask::Window(0, 0)}, Method::kReference);
  EXPECT_EQ(std::vector<double>(call.o.begin(), call.o.begin() + 3), call.v);
  EXPECT_EQ(std::vector<double>(call.o.begin() + 3, call.o.end()), std::vector<double>(3, 0.0));
  EXPECT_EQ(call.lse[1], -std::numeric_limits<double>::infinity());
}

// A bias of -infinity masks: its score has weight 0 and passes no gradient on, whatever the norm.
TEST(ReferenceAttention, ABiasOfMinusInfinityIsAMask) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  const Sizes sizes{.T = 2, .S = 4, .D = 2, .Dv = 2};
  const bool dropped[] = {false, true, false, true};
  const std::vector<double> bias = {0.5, -kInfinity, 0.25, -kInfinity}, zero = {0.5, 0, 0.25, 0};
  const auto with = [](const std::vector<double>& values, std::vector<double>& gradient) {
    return bias::Dense<double>(ScoreView<const double>::contiguous(values.data(), 1, 1, 1, 4),
                               ScoreView<double>::contiguous(gradient.data(), 1, 1, 1, 4));
  };
  for (const Norm& norm : {Norm(norm::None()), Norm(norm::Sigmoid()), Norm(norm::Softmax())}) {
    Call<double> by_bias(sizes, 1), by_mask(sizes, 1);
    std::vector<double> dbias(4), dzero(4);
    by_bias.run({.bias = with(bias, dbias), .norm = norm}, Method::kReference);
    by_mask.run({.bias = with(zero, dzero),
                 .mask = mask::Drop(ScoreView<const bool>::contiguous(dropped, 1, 1, 1, 4)),
                 .norm = norm},
                Method::kReference);
    EXPECT_TRUE(same_results(by_bias, by_mask)) << name_of(norm);
    EXPECT_EQ(dbias, dzero) << name_of(norm);
    EXPECT_EQ(dbias[1], 0) << name_of(norm);
  }
}

}  // namespace
}  // namespace fovea::testing
