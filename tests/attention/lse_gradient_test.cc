// SPDX-License-Identifier: Apache-2.0
// A loss that reads lse: its gradient against differences, against the reference, and where lse is
// no function of anything.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "tests/attention/support/gradients.h"
#include "tests/isa.h"
#include "tests/support/throws.h"

namespace fovea::testing {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

TEST(LseGradient, IsThatOfTheForward) {
  for (const Method method : {Method::kReference, Method::kFused}) {
    Call<double> call({.B = 2, .T = 5, .S = 4, .H = 2, .G = 1, .D = 3, .Dv = 2}, 1);
    call.want_lse_gradient();
    std::vector<double> sink = {0.5, -1}, dsink(2), slopes = {0.3, 0.1}, dslopes(2);
    const Attention<double> attention{
        .bias = bias::Alibi<double>({slopes.data(), 2}, {dslopes.data(), 2}),
        .mask = mask::Causal(),  // the first query keeps no key: its lse is the sink
        .dropout = {.probability = 0.3, .seed = 5},
        .sink = {{sink.data(), 2}, {dsink.data(), 2}}};
    expect_gradients(call, attention, {{"sink", sink, dsink}, {"slopes", slopes, dslopes}}, method);
  }
}

TEST(LseGradient, OfValuesThatOneKeyGives) {
  for (const Method method : {Method::kReference, Method::kFused}) {
    Call<double> call({.T = 3, .S = 1, .D = 4, .Dv = 2}, 2);
    call.want_lse_gradient();
    std::vector<double> table(3 * 2, 0.5), dtable(3 * 2);
    const Attention<double> attention{
        .values = values::Shaw<double>({table.data(), 3, 2}, {dtable.data(), 3, 2})};
    expect_gradients(call, attention, {}, method);
  }
}

// By hand: lse alone, so that dq = scale sum of p k.
TEST(LseGradient, IsTheMeanKey) {
  Call<double> call({.S = 2});
  call.q = {2};
  call.k = {1, -0.5};
  call.d_o = {0};
  call.d_lse = {3};
  call.run({});
  const double p = 1 / (1 + std::exp(-3.0));
  EXPECT_DOUBLE_EQ(call.dq[0], 3 * (p * 1 - (1 - p) * 0.5));
  EXPECT_DOUBLE_EQ(call.dk[0], 3 * p * 2);
  EXPECT_DOUBLE_EQ(call.dv[0], 0);
}

TEST(LseGradient, ManyTilesOnEveryInstructionSet) {
  const Sizes sizes{.B = 2, .T = 150, .S = 290, .H = 4, .G = 2, .D = 17, .Dv = 9};
  const Attention<double> attention{.mask = mask::Causal()};
  Call<double> exact(sizes, 3);
  exact.want_lse_gradient();
  exact.run(attention, Method::kReference);
  for_each_isa([&] {
    Call<double> fused(sizes, 3);
    fused.want_lse_gradient();
    fused.run(attention, Method::kFused, 3);
    for (const auto of : {&Call<double>::dq, &Call<double>::dk, &Call<double>::dv}) {
      EXPECT_LE(difference(fused.*of, exact.*of), 1e-12);
    }
  });
}

TEST(LseGradient, OfAQueryThatKeepsNoKeyIsNotRead) {
  for (const Method method : {Method::kReference, Method::kFused}) {
    Call<double> call({.T = 3, .S = 2, .D = 4, .Dv = 2}, 4);
    call.d_lse = {kInfinity, 1, 1};  // of the first query, whose lse is -infinity
    call.run({.mask = mask::Causal()}, method);
    for (const double x : call.dq) EXPECT_TRUE(std::isfinite(x));
    for (const double x : call.dk) EXPECT_TRUE(std::isfinite(x));
  }
}

TEST(LseGradient, NeedsAnLse) {
  Call<double> call({});
  AttentionSaved<double> saved = call.saved();
  saved.lse = saved.lse_low = {};
  saved.d_lse = RowView<const double>::contiguous(call.lse.data(), 1, 1, 1);
  const auto backward = [&](const Attention<double>& attention) {
    attention_backward(Context(1), attention, call.in(), saved, call.gradients());
  };
  EXPECT_THROWS(backward({.norm = norm::Sigmoid()}), kShape, "sigmoid has no log-sum-exp");
  saved = call.saved();
  saved.d_lse = RowView<const double>::contiguous(call.lse.data(), 1, 1, 2);
  EXPECT_THROWS(backward({}), kShape, "gradient of lse");
}

}  // namespace
}  // namespace fovea::testing
