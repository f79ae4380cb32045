// SPDX-License-Identifier: Apache-2.0
// The fused forward: golden values, and what attention must be, whatever the numbers.
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <numeric>

#include "tests/attention/support/golden.h"
#include "tests/isa.h"

namespace fovea::testing {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

TEST(AttentionForward, MatchesGoldenValues) {
  for_each_isa([] {
    golden::expect_forward<double>(Method::kFused);
    golden::expect_forward<float>(Method::kFused);
  });
}

TEST(AttentionForward, WeightsOfARowSumToOne) {
  for_each_isa([] {
    Call<float> call({.B = 2, .T = 70, .S = 201, .H = 3, .G = 1, .D = 20, .Dv = 4}, 1);
    call.want_weights();
    call.forward({});
    for (std::size_t row = 0; row < call.weights.size(); row += 201) {
      const auto begin = call.weights.begin() + static_cast<std::ptrdiff_t>(row);
      EXPECT_NEAR(std::accumulate(begin, begin + 201, 0.0), 1.0, 2e-6);
    }
  });
}

// Spec A2: a query alone has the bits that it has among others.
TEST(AttentionForward, OneQueryIsARowOfTheBatch) {
  for_each_isa([] {
    Call<float> all({.B = 2, .T = 131, .S = 300, .H = 2, .G = 1, .D = 24, .Dv = 17}, 2);
    all.forward({});
    for (const index i : {0, 15, 63, 64, 100, 130}) {
      Call<float> one({.B = 2, .T = 1, .S = 300, .H = 2, .G = 1, .D = 24, .Dv = 17}, 2);
      for (index b = 0; b < 2; ++b) std::copy_n(all.q_row(b, i, 0), 2 * 24, one.q_row(b, 0, 0));
      one.forward({});
      for (index b = 0; b < 2; ++b) {
        EXPECT_TRUE(std::equal(one.o_row(b, 0, 0), one.o_row(b, 0, 0) + 2 * 17, all.o_row(b, i, 0)))
            << "query " << i;
        for (index h = 0; h < 2; ++h) EXPECT_EQ(one.lse_at(b, h, 0), all.lse_at(b, h, i));
      }
    }
  });
}

std::vector<index> reversed(index n) {
  std::vector<index> order(static_cast<std::size_t>(n));
  std::iota(order.rbegin(), order.rend(), 0);
  return order;
}

// Row n of the result is row order[n] of x.
std::vector<float> reordered(const std::vector<float>& x, const std::vector<index>& order) {
  std::vector<float> to(x.size());
  const std::size_t width = x.size() / order.size();
  for (std::size_t n = 0; n < order.size(); ++n) {
    const auto from =
        x.begin() + static_cast<std::ptrdiff_t>(order[n]) * static_cast<std::ptrdiff_t>(width);
    std::copy_n(from, width, to.begin() + static_cast<std::ptrdiff_t>(n * width));
  }
  return to;
}

// Spec A7: f(permuted X) = permuted f(X).
TEST(AttentionForward, SelfAttentionIsPermutationEquivariant) {
  Call<float> call({.T = 150, .S = 150, .D = 16, .Dv = 16}, 3);
  call.k = call.v = call.q;
  Call<float> other = call;
  const auto order = reversed(150);
  other.q = other.k = other.v = reordered(call.q, order);
  call.forward({});
  other.forward({});
  // Each side is within 4 ulp of the largest value.
  const double largest = largest_magnitude({call.o.begin(), call.o.end()});
  EXPECT_LE(difference(other.o, reordered(call.o, order)),
            8 * largest * std::numeric_limits<float>::epsilon());
}

// Spec A9: keys and values are a bag, until positions are added.
TEST(AttentionForward, KeysAndValuesAreABagWithoutPositions) {
  Call<float> call({.T = 20, .S = 150, .D = 16, .Dv = 8}, 4), other = call;
  const auto order = reversed(150);
  other.k = reordered(call.k, order);
  other.v = reordered(call.v, order);
  call.forward({});
  other.forward({});
  EXPECT_LE(difference(call.o, other.o), 1e-6);

  const float slope = 0.1f;
  const Attention<float> with_positions{.bias = bias::Alibi<float>({&slope, 1})};
  call.forward(with_positions);
  other.forward(with_positions);
  EXPECT_GT(difference(call.o, other.o), 1e-2);
}

// Spec A3: scale 1 is the unscaled product; the default is 1 / sqrt(D).
TEST(AttentionForward, ScaleIsFree) {
  Call<float> call({.T = 9, .S = 11, .D = 16, .Dv = 4}, 5), scaled = call;
  call.forward({.score = score::Dot{1.0}});
  for (float& x : scaled.q) x *= 4;
  scaled.forward({});
  EXPECT_EQ(call.o, scaled.o);
}

// Spec M6, bit for bit, across tiles; both alignments are the same where T = S.
TEST(AttentionForward, CausalNeverLooksAhead) {
  for_each_isa([] {
    for (const Align align : {Align::kBottomRight, Align::kTopLeft}) {
      const Attention<float> causal{.mask = mask::Causal(align)};
      Call<float> before({.T = 200, .S = 200, .H = 2, .G = 2, .D = 8, .Dv = 8}, 6);
      before.forward(causal);
      for (const index t : {1, 15, 64, 65, 127, 128, 129, 199}) {
        Call<float> after = before;
        std::fill_n(after.k_row(0, t, 0), 16, 50.0f);
        std::fill_n(after.v_row(0, t, 0), 16, -50.0f);
        std::fill_n(after.q_row(0, t, 0), 16, 50.0f);
        after.forward(causal);
        EXPECT_TRUE(std::equal(before.o.begin(), before.o.begin() + t * 16, after.o.begin()));
        EXPECT_FALSE(
            std::equal(before.o.begin() + t * 16, before.o.end(), after.o.begin() + t * 16));
      }
    }
  });
}

// Spec M7: [T, S] broadcast over batch and heads; heads of 4 concatenate to [6, 3, 8].
TEST(AttentionForward, MaskBroadcastsOverBatchAndHeads) {
  Call<float> call({.B = 6, .T = 3, .S = 3, .H = 2, .G = 2, .D = 4, .Dv = 4}, 7);
  std::vector<std::uint8_t> lower = {1, 0, 0, 1, 1, 0, 1, 1, 1};
  const auto once = ScoreView<const std::uint8_t>::contiguous(lower.data(), 1, 1, 3, 3);
  call.forward({.mask = mask::Keep(once)});
  EXPECT_EQ(call.o.size(), 6u * 3 * 8);
  Call<float> causal = call;
  causal.forward({.mask = mask::Causal()});
  EXPECT_EQ(call.o, causal.o);
}

// Spec M8: a conjunction of types is the dense mask of the conjunction.
TEST(AttentionForward, CombinedMasksAreTheDenseMask) {
  const index T = 130, S = 170;
  const std::int32_t lengths[] = {170, 101};
  std::vector<std::uint8_t> dense(static_cast<std::size_t>(2 * T * S));
  for (index b = 0; b < 2; ++b) {
    for (index i = 0; i < T; ++i) {
      for (index j = 0; j < S; ++j) {
        const bool kept = j < lengths[b] && j <= i + lengths[b] - T;
        dense[static_cast<std::size_t>((b * T + i) * S + j)] = kept ? 1 : 0;
      }
    }
  }
  for_each_isa([&] {
    Call<float> types({.B = 2, .T = T, .S = S, .H = 2, .G = 1, .D = 8, .Dv = 8}, 8);
    Call<float> matrix = types;
    types.run({.mask = mask::Causal() & mask::KeyLengths({lengths, 2})});
    const auto view = ScoreView<const std::uint8_t>::contiguous(dense.data(), 2, 1, T, S);
    matrix.run({.mask = mask::Keep(view)});
    EXPECT_TRUE(same_results(types, matrix));
    const auto bools = std::make_unique<bool[]>(dense.size());
    for (std::size_t n = 0; n < dense.size(); ++n) bools[n] = dense[n] != 0;
    Call<float> of_bools = matrix;
    of_bools.run({.mask = mask::Keep(ScoreView<const bool>::contiguous(bools.get(), 2, 1, T, S))});
    EXPECT_TRUE(same_results(of_bools, matrix));
    for (std::size_t n = 0; n < dense.size(); ++n) bools[n] = !bools[n];
    of_bools.run({.mask = mask::Drop(ScoreView<bool>::contiguous(bools.get(), 2, 1, T, S))});
    EXPECT_TRUE(same_results(of_bools, matrix));
  });
}

// Spec D1 and section 3: no -1e9, no uniform row.
TEST(AttentionForward, EmptyRowsAreZero) {
  for_each_isa([] {
    Call<float> call({.B = 2, .T = 70, .S = 40, .H = 2, .G = 2, .D = 5, .Dv = 3}, 9);
    call.want_weights();
    const std::int32_t lengths[] = {0, 40};
    call.run({.mask = mask::Causal() & mask::KeyLengths({lengths, 2})});
    for (index b = 0; b < 2; ++b) {
      for (index i = 0; i < (b == 0 ? 70 : 30); ++i) {
        EXPECT_TRUE(
            std::all_of(call.o_row(b, i, 0), call.o_row(b, i, 2), [](float x) { return x == 0; }));
        EXPECT_EQ(call.lse_at(b, 1, i), -kInfinity);
        const auto dq = call.dq.begin() + (b * 70 + i) * 10;
        EXPECT_TRUE(std::all_of(dq, dq + 10, [](float x) { return x == 0; }));
      }
    }
    const auto none = [](const std::vector<float>& x, index n) {
      return std::all_of(x.begin(), x.begin() + n, [](float y) { return y == 0; });
    };
    EXPECT_TRUE(none(call.dk, 40 * 2 * 5));
    EXPECT_TRUE(none(call.dv, 40 * 2 * 3));
    EXPECT_TRUE(none(call.weights, 2 * 70 * 40));
  });
}

// Spec D20: a shift of every score by -1e10 would make the weights uniform.
TEST(AttentionForward, LogitsMatter) {
  Call<float> call({.T = 1, .S = 4, .D = 1, .Dv = 4}, 10);
  call.q = {1};
  call.k = {3.25f, -7.5f, 0.125f, 9};
  call.want_weights();
  call.forward({});
  EXPECT_GT(call.weights[3], 0.99f);
  EXPECT_LT(call.weights[1], 1e-6f);
}

// Score 1e4 apart: exp would overflow or underflow anywhere but at the maximum.
TEST(AttentionForward, LargeScoresAreExact) {
  for_each_isa([] {
    Call<float> call({.T = 3, .S = 200, .D = 1, .Dv = 2}, 11);
    call.q = {1e4f, -1e4f, 1};
    for (index j = 0; j < 200; ++j)
      call.k[static_cast<std::size_t>(j)] = static_cast<float>(j - 100);
    call.forward({});
    EXPECT_EQ(call.o_row(0, 0, 0)[1], call.v_row(0, 199, 0)[1]);
    EXPECT_EQ(call.o_row(0, 1, 0)[0], call.v_row(0, 0, 0)[0]);
    EXPECT_EQ(call.lse[0], 99e4f);
    EXPECT_EQ(call.lse[1], 100e4f);
  });
}

// Only o is required; what is not asked for changes nothing.
// Only a row without keys is empty, however low the scores of another are.
TEST(AttentionForward, ScoresMayBeAsLowAsTheyLike) {
  for (const bool masked : {false, true}) {
    Call<float> exact({.T = 70, .S = 100});
    for (float& x : exact.q) x = -1e19f;
    for (std::size_t j = 0; j < exact.k.size(); ++j) {
      exact.k[j] = 2e19f - 1e17f * static_cast<float>(j * 7 % 100);
    }
    exact.want_weights();
    const Attention<float> attention{.mask = masked ? Mask(mask::Causal()) : Mask()};
    exact.run(attention, Method::kReference);
    EXPECT_TRUE(std::isfinite(exact.lse[0]));
    for_each_isa([&] {
      Call<float> fused = exact;
      fused.run(attention);
      EXPECT_LE(difference(fused.o, exact.o), 1e-6);
      EXPECT_LE(difference(fused.weights, exact.weights), 1e-6);
      EXPECT_EQ(fused.lse, exact.lse);
      EXPECT_LE(difference(fused.dv, exact.dv), 1e-5);
    });
  }
}

TEST(AttentionForward, OptionalOutputsMayBeLeftOut) {
  Call<float> call({.T = 40, .S = 130, .D = 8, .Dv = 8}, 12), bare = call;
  call.want_weights();
  call.forward({});
  attention_forward<float>(Context(1), {}, bare.in(), {.o = bare.out().o});
  EXPECT_EQ(call.o, bare.o);
}

TEST(AttentionForward, NothingToDoIsFine) {
  for (const Sizes& sizes : {Sizes{.B = 0}, Sizes{.T = 0}, Sizes{.H = 0, .G = 0}}) {
    Call<float> call(sizes);
    EXPECT_NO_THROW(call.run({}));
    EXPECT_TRUE(call.o.empty());
  }
  Call<float> no_keys({.T = 3, .S = 0, .D = 2, .Dv = 2});
  no_keys.run({.mask = mask::Causal()});
  EXPECT_EQ(no_keys.o, std::vector<float>(6, 0.0f));
  EXPECT_EQ(no_keys.dq, std::vector<float>(6, 0.0f));
  EXPECT_EQ(no_keys.lse[2], -kInfinity);
}

}  // namespace
}  // namespace fovea::testing
