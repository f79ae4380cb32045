// SPDX-License-Identifier: Apache-2.0
#include "fovea/attention/score/score.h"

#include <gmock/gmock.h>

#include <cmath>

#include "tests/attention/support/gradients.h"
#include "tests/attention/support/table.h"
#include "tests/isa.h"
#include "tests/support/throws.h"

namespace fovea::testing {
namespace {

TEST(Score, SaysWhatItIs) {
  EXPECT_EQ(name_of<float>(score::Dot()), "dot");
  EXPECT_EQ(name_of<float>(score::Cosine()), "cosine");
  EXPECT_EQ(name_of<double>(score::Concat<double>()), "concat");
  EXPECT_EQ(name_of<float>(score::L2()), "l2");
  EXPECT_EQ(name_of<double>(score::Additive<double>()), "additive");
}

TEST(Score, ScaleIsOneUnlessItGrowsWithTheWidth) {
  EXPECT_EQ(detail::scale_of<float>(score::Dot(), 16), 0.25);
  EXPECT_EQ(detail::scale_of<float>(score::Dot{3}, 16), 3);
  EXPECT_EQ(detail::scale_of<float>(score::L2(), 16), 0.25);
  EXPECT_EQ(detail::scale_of<float>(score::Cosine(), 16), 1);
  EXPECT_EQ(detail::scale_of<float>(score::Additive<float>(), 16), 1);
  EXPECT_EQ(detail::scale_of<float>(score::Cosine{7}, 16), 7);
  EXPECT_EQ(detail::scale_of<double>(score::Concat<double>{.w = {}, .scale = 2}, 16), 2);
}

// The scores of one query and head, as they come out without a norm where v_j is the j-th unit.
std::vector<double> scores_of(Call<double>& call, Attention<double> attention, index i, index h,
                              Method method) {
  attention.norm = norm::None();
  std::fill(call.v.begin(), call.v.end(), 0);
  for (index j = 0; j < call.S; ++j) {
    for (index g = 0; g < call.G; ++g) call.v_row(0, j, g)[j] = 1;
  }
  call.forward(attention, method);
  return {call.o_row(0, i, h), call.o_row(0, i, h) + call.S};
}

double dot(const double* a, const double* b, index n) {
  double sum = 0;
  for (index c = 0; c < n; ++c) sum += a[c] * b[c];
  return sum;
}

constexpr index kD = 6, kS = 5;

Call<double> small_call() {
  return Call<double>({.T = 4, .S = kS, .H = 2, .G = 1, .D = kD, .Dv = kS}, 7);
}

template <class Expected>
void expect_scores(const Attention<double>& attention, Expected&& expected) {
  Call<double> call = small_call();
  for (const Method method : {Method::kReference, Method::kFused}) {
    for (const index h : {0, 1}) {
      const std::vector<double> scores = scores_of(call, attention, 2, h, method);
      for (index j = 0; j < kS; ++j) {
        const double score = expected(call.q_row(0, 2, h), call.k_row(0, j, 0), h, j);
        EXPECT_NEAR(scores[static_cast<std::size_t>(j)], score, 1e-14) << "key " << j;
      }
    }
  }
}

TEST(Score, CosineByItsFormula) {
  expect_scores({.score = score::Cosine{5}}, [](const double* q, const double* k, index, index) {
    return 5 * dot(q, k, kD) / std::sqrt(dot(q, q, kD) * dot(k, k, kD));
  });
}

TEST(Score, ConcatByItsFormula) {
  const std::vector<double> w = normals<double>(3, 2 * 2 * kD);
  expect_scores({.score = score::Concat<double>{{w.data(), 2, 2 * kD}}},
                [&](const double* q, const double* k, index h, index) {
                  const double* const of_head = w.data() + h * 2 * kD;
                  return dot(of_head, q, kD) + dot(of_head + kD, k, kD);
                });
}

TEST(Score, L2ByItsFormula) {
  expect_scores({.score = score::L2{0.5}}, [](const double* q, const double* k, index, index) {
    return -0.5 * (dot(q, q, kD) - 2 * dot(q, k, kD) + dot(k, k, kD));
  });
}

TEST(Score, AdditiveByItsFormula) {
  const std::vector<double> v = normals<double>(3, 2 * kD);
  expect_scores({.score = score::Additive<double>{{v.data(), 2, kD}, {}, 3}},
                [&](const double* q, const double* k, index h, index) {
                  double sum = 0;
                  for (index c = 0; c < kD; ++c) sum += v[h * kD + c] * std::tanh(q[c] + k[c]);
                  return 3 * sum;
                });
}

// By complex numbers: the product of two turned pairs is that of the pairs, turned by the
// difference of their positions. Query 2 of 4 over 5 keys stands at position 3.
TEST(Score, RotaryByItsFormula) {
  for (const RotaryPairs pairs : {RotaryPairs::kHalves, RotaryPairs::kInterleaved}) {
    const Attention<double> attention{.score = score::Dot{1}, .rotary = {pairs, 100}};
    expect_scores(attention, [&](const double* q, const double* k, index, index j) {
      double score = 0;
      for (index c = 0; c < kD / 2; ++c) {
        const bool halves = pairs == RotaryPairs::kHalves;
        const index x = halves ? c : 2 * c, y = halves ? c + kD / 2 : 2 * c + 1;
        const double angle =
            static_cast<double>(3 - j) * std::pow(100, -2 * static_cast<double>(c) / kD);
        score += std::cos(angle) * (q[x] * k[x] + q[y] * k[y]) +
                 std::sin(angle) * (q[x] * k[y] - q[y] * k[x]);
      }
      return score;
    });
  }
}

TEST(Score, AZeroVectorHasCosineZeroAndNoGradient) {
  for (const Method method : {Method::kReference, Method::kFused}) {
    Call<double> call = small_call();
    std::fill_n(call.q_row(0, 1, 0), kD, 0);
    std::fill_n(call.k_row(0, 3, 0), kD, 0);
    call.run({.score = score::Cosine()}, method);
    for (index c = 0; c < kD; ++c) {
      EXPECT_EQ(call.dq[static_cast<std::size_t>(1 * 2 * kD + c)], 0);
      EXPECT_EQ(call.dk[static_cast<std::size_t>(3 * kD + c)], 0);
    }
    for (const double x : call.dq) EXPECT_TRUE(std::isfinite(x));
  }
}

// The whole backward by central differences of the fused forward.
TEST(Score, GradientsAreThoseOfTheForward) {
  for (const auto& row : score_table<double>()) {
    SCOPED_TRACE(row.name);
    PartData<double> parts;
    Call<double> call({.B = 2, .T = 5, .S = 7, .H = 2, .G = 1, .D = 4, .Dv = 2}, 5);
    Attention<double> attention{.mask = mask::Causal()};
    row.set(attention, parts, 4);
    std::vector<CheckedGradient> more;
    if (!parts.w.empty()) more.push_back({"w", parts.w, parts.dw});
    expect_gradients(call, attention, more);
  }
}

TEST(Score, WhatDoesNotFitIsRefused) {
  Call<float> call({.T = 3, .S = 3, .D = 5, .Dv = 2});
  const std::vector<float> w(10);
  const auto forward = [&](const Attention<float>& attention) { call.forward(attention); };
  EXPECT_THROWS(forward({.score = score::Cosine{NAN}}), kOptionValue, "the scale must be finite");
  EXPECT_THROWS(forward({.score = score::Concat<float>{{w.data(), 2, 5}}}), kShape,
                "w of concat must be [H=1, 2 D=10]; it is [2, 5]");
  EXPECT_THROWS(forward({.score = score::Additive<float>{{w.data(), 1, 4}}}), kShape,
                "v of additive must be [H=1, D=5]; it is [1, 4]");
  std::vector<float> dv(10);
  EXPECT_THROWS(forward({.score = score::Additive<float>{{w.data(), 1, 5}, {dv.data(), 2, 5}}}),
                kShape, "the gradient of v of additive must be [H=1, D=5]; it is [2, 5]");
  EXPECT_THROWS(forward({.rotary = {RotaryPairs::kHalves}}), kShape, "D must be even; it is 5");
  Call<float> even({.T = 3, .S = 3, .D = 4, .Dv = 2});
  EXPECT_THROWS(even.forward({.rotary = {RotaryPairs::kHalves, -1}}), kOptionValue, "base");
}

}  // namespace
}  // namespace fovea::testing
