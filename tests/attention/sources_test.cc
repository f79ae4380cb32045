// SPDX-License-Identifier: Apache-2.0
// What the sources say of attention, and where their code computes something else: the right
// result, and how the wrong one differs (docs/articles).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>

#include "fovea/attention/attention.h"
#include "tests/attention/support/call.h"
#include "tests/isa.h"

namespace fovea::testing {
namespace {

using ::testing::ElementsAre;

// Row i of the weights of the first head.
std::vector<float> weights_of(const Call<float>& call, index i) {
  const auto first = call.weights.begin() + i * call.S;
  return {first, first + call.S};
}

double sum_of(const std::vector<float>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0);
}

index kept_by(const std::vector<float>& weights) {
  return std::count_if(weights.begin(), weights.end(), [](float w) { return w != 0; });
}

// ------------------------------- why 1 / sqrt(D) (Vaswani et al. 2017, section 3.2.1, footnote 4)

// With one key the log-sum-exp of a query is its score. Here are 100,000 independent pairs of rows
// of variance 1; the deviation of their variance is below .005.
TEST(Sources, A4ScoresOfIndependentRowsHaveVarianceOne) {
  constexpr index kSequences = 1000, kHeads = 100, kPairs = kSequences * kHeads, D = 64;
  Call<float> call({.B = kSequences, .H = kHeads, .G = kHeads, .D = D}, 21);
  const auto variance = [&](std::optional<double> scale) {
    call.forward({.score = score::Dot{scale}});
    double sum = 0, squares = 0;
    for (const float s : call.lse) sum += double{s}, squares += double{s} * double{s};
    return squares / kPairs - sum / kPairs * (sum / kPairs);
  };
  EXPECT_NEAR(variance({}), 1, 0.02);
  EXPECT_NEAR(variance(1.0) / D, 1, 0.02);
}

// The Jacobian of a row of weights is diag(p) - p p^T; its largest entry is p (1 - p) of some key.
TEST(Sources, A4UnscaledScoresSaturateTheWeights) {
  constexpr index T = 201;
  const auto median = [&](std::optional<double> scale) {
    Call<float> call({.T = T, .S = 8, .D = 256}, 22);
    call.want_weights();
    call.forward({.score = score::Dot{scale}});
    std::vector<double> largest;
    for (index i = 0; i < T; ++i) {
      double entry = 0;
      for (const float p : weights_of(call, i))
        entry = std::max(entry, double{p} * (1 - double{p}));
      largest.push_back(entry);
    }
    std::nth_element(largest.begin(), largest.begin() + T / 2, largest.end());
    return largest[T / 2];
  };
  EXPECT_GE(median({}), 10 * median(1.0));
}

// ------------------------------------------------------------------------------------------ D11,
// D12

// D11: the weights that are told are those before dropout. (In the source they are those after it.)
TEST(Sources, D11WeightsAreThoseBeforeDropout) {
  for_each_isa([] {
    Call<float> plain({.T = 70, .S = 90, .H = 2, .G = 2, .D = 8, .Dv = 8}, 23);
    plain.want_weights();
    Call<float> dropped = plain;
    plain.forward({});
    dropped.forward({.dropout = {.probability = 0.5}});
    EXPECT_EQ(dropped.weights, plain.weights);
    EXPECT_NE(dropped.o, plain.o);
  });
}

// D12: a score is q . k, whatever v is. (The source's text says q and v.)
TEST(Sources, D12ScoresAreThoseOfQueriesAndKeys) {
  Call<float> call({.T = 5, .S = 7, .D = 4, .Dv = 4}, 24);
  call.want_weights();
  call.forward({});
  Call<float> other_values = call, other_keys = call;
  for (float& x : other_values.v) x += 1;
  for (std::size_t n = 0; n < call.k.size(); n += 4) other_keys.k[n] += 1;
  other_values.forward({});
  other_keys.forward({});
  EXPECT_EQ(other_values.weights, call.weights);
  EXPECT_EQ(other_values.lse, call.lse);
  EXPECT_NE(other_values.o, call.o);
  EXPECT_NE(other_keys.weights, call.weights);
}

// ------------------------------------------------------------------------------------------ D21,
// D22

// What the linked code computes where r rows of zeros lie before the first key and after the last:
// scores of 0, which take part in the sum.
double output_with_zero_padding(const Call<float>& call, index i, index r) {
  double sum = 0, output = 0;
  for (index j = i - r; j <= i + r; ++j) {
    const bool inside = j >= 0 && j < call.S;
    const auto at = static_cast<std::size_t>(j);
    const double e =
        inside ? std::exp(double{call.q[static_cast<std::size_t>(i)]} * double{call.k[at]}) : 1;
    sum += e;
    if (inside) output += e * double{call.v[at]};
  }
  return output / sum;
}

// D21: rows at the edges see fewer keys, never padding.
TEST(Sources, D21RowsAtTheEdgesSeeFewerKeys) {
  constexpr index T = 30, r = 3;
  for_each_isa([] {
    Call<float> call({.T = T, .S = T}, 25);
    for (float& x : call.v) x = 1 + std::abs(x);
    call.want_weights();
    call.forward({.mask = mask::Window(r, r)});
    for (index i = 0; i < T; ++i) {
      const auto weights = weights_of(call, i);
      const index missing = std::max<index>(0, r - i) + std::max<index>(0, i + r - (T - 1));
      EXPECT_EQ(kept_by(weights), 2 * r + 1 - missing) << i;
      EXPECT_NEAR(sum_of(weights), 1, 1e-6);
      const double padded = output_with_zero_padding(call, i, r);
      const double o = call.o[static_cast<std::size_t>(i)];
      if (missing == 0) {
        EXPECT_NEAR(o, padded, 1e-5) << i;
      } else {
        EXPECT_GT(o - padded, 1e-2) << i;  // zeros take weight from values above 1
      }
    }
  });
}

// D21: a length that the rate divides is padded by nothing, as is any other.
TEST(Sources, D21DilatedAttentionPadsNoLength) {
  for (const index T : {9, 10, 11, 12}) {
    Call<float> call({.T = T, .S = T, .D = 4}, 26);
    call.want_weights();
    call.forward({.mask = mask::Dilated(3)});
    for (index i = 0; i < T; ++i) {
      const auto weights = weights_of(call, i);
      EXPECT_EQ(kept_by(weights), i / 3 + (T - 1 - i) / 3 + 1) << T << ' ' << i;
      EXPECT_NEAR(sum_of(weights), 1, 1e-6);
    }
  }
}

// D22: the keys near a query are its neighbours, and it counts itself once. (In the linked code the
// near part is dilated, too, and the query is in both parts. Golden D_sparse_local_offsets_rate3:
// its offsets are -6, -3, 0, 3, 6.)
TEST(Sources, D22NearKeysAreNeighboursAndCountOnce) {
  constexpr index T = 15, i = 7;
  Call<float> call({.T = T, .S = T, .D = 4}, 27);
  std::fill(call.q.begin(), call.q.end(), 0.0f);  // equal scores
  call.want_weights();
  call.forward({.mask = mask::Strided(3)});
  std::vector<index> offsets;
  const auto weights = weights_of(call, i);
  for (index j = 0; j < T; ++j) {
    const float w = weights[static_cast<std::size_t>(j)];
    if (w == 0) continue;
    offsets.push_back(j - i);
    EXPECT_FLOAT_EQ(w, 1.0f / 9) << j;
  }
  EXPECT_THAT(offsets, ElementsAre(-6, -3, -2, -1, 0, 1, 2, 3, 6));
}

// -----------------------------------------------------------------------------------------------
// D24

// D24: the order of a relative position is said. j - i is i - j with the table turned round, and
// otherwise another result.
TEST(Sources, D24TheOrderOfRelativePositionsIsExplicit) {
  constexpr index s = 2, D = 4;
  const auto table = normals<float>(28, (2 * s + 1) * D);
  std::vector<float> turned(table.size());
  for (index row = 0; row <= 2 * s; ++row) {
    std::copy_n(table.begin() + row * D, D, turned.begin() + (2 * s - row) * D);
  }
  Call<float> call({.T = 9, .S = 9, .D = D, .Dv = 3}, 29);
  const auto output = [&](const std::vector<float>& rows, ShawOrder order) {
    Call<float> c = call;
    const Rows<const float> view(rows.data(), 2 * s + 1, D);
    c.forward({.bias = bias::Shaw<float>(view, {}, order)});
    return c.o;
  };
  const auto behind = output(table, ShawOrder::kQueryMinusKey);
  EXPECT_EQ(output(turned, ShawOrder::kKeyMinusQuery), behind);
  EXPECT_NE(output(table, ShawOrder::kKeyMinusQuery), behind);
}

}  // namespace
}  // namespace fovea::testing
