// SPDX-License-Identifier: Apache-2.0
#include "fovea/attention/score/pair_score.h"

#include <gmock/gmock.h>

#include <cmath>
#include <memory>

#include "tests/attention/support/gradients.h"
#include "tests/attention/support/table.h"
#include "tests/isa.h"
#include "tests/support/throws.h"

namespace fovea::testing {
namespace {

template <class T>
Attention<T> additive(const std::vector<T>& v, std::vector<T>& dv, index D) {
  const auto heads = static_cast<index>(v.size()) / D;
  return {.score = score::Additive<T>{{v.data(), heads, D}, {dv.data(), heads, D}}};
}

TEST(PairScore, IsThatOfL2AndAdditiveAlone) {
  std::vector<float> v(8), dv(8);
  EXPECT_EQ(detail::pair_score(additive(v, dv, 4).score).name(), "additive");
  EXPECT_EQ(detail::pair_score<float>(score::L2()).name(), "l2");
  for (const Score<float>& score : {Score<float>(score::Dot()), Score<float>(score::Cosine())}) {
    EXPECT_FALSE(detail::is_pair_score(score));
    EXPECT_TRUE(detail::pair_score(score).empty());
  }
}

constexpr index kQueries = 21, kKeys = 35, kStride = 64;

// A tile of queries and keys, and the part that makes its scores.
template <class T>
struct ScoredTile {
  index D;
  std::vector<T> q, k;
  Sequence sequence;
  TileSite site;
  TileRows<T> rows;
  std::shared_ptr<const BiasPart<T>> part;

  ScoredTile(const Attention<T>& attention, index width)
      : D(width),
        q(normals<T>(1, kQueries * D)),
        k(normals<T>(2, kKeys * D)),
        sequence{.queries = kQueries, .keys = kKeys},
        site{sequence, 1, 0, kQueries, 0, kKeys},
        rows{{q.data(), kQueries, D}, {k.data(), kKeys, D}, T{0.5}},
        part(detail::pair_score(attention.score).parts().front()) {}
  ScoredTile(const ScoredTile&) = delete;
  ScoredTile& operator=(const ScoredTile&) = delete;
};

// A tile is its definition, whichever side lies in the lanes, in sums of the size of its terms.
template <class T>
void expect_tiles_of_the_definition(const ScoredTile<T>& scored) {
  const auto& [D, q, k, sequence, site, rows, part] = scored;
  const T bound = 8 * static_cast<T>(D) * std::numeric_limits<T>::epsilon();
  for (const TileLanes lanes : {TileLanes::kQueries, TileLanes::kKeys}) {
    std::vector<T> data(64 * 64, T{7});
    const ScoreTile<T> tile{data.data(), kStride, lanes};
    part->apply(site, rows, tile);
    for (index r = 0; r < kQueries; ++r) {
      for (index c = 0; c < kKeys; ++c) {
        EXPECT_NEAR(tile.at(r, c), part->apply_one(site.at(r, c), rows.at(r, c), T{0}), bound);
      }
    }
  }
}

template <class T>
void expect_gradients_of_the_definition(const ScoredTile<T>& scored) {
  const auto& [D, q, k, sequence, site, rows, part] = scored;
  std::vector<T> ds = normals<T>(3, kQueries * kStride);
  for (std::size_t n = 0; n < ds.size(); n += 3) ds[n] = 0;
  struct Sums {
    std::vector<T> dq, dk;
    std::vector<double> dv;
  };
  Sums fast{std::vector(q.size(), T{1}), std::vector(k.size(), T{2}),
            std::vector(static_cast<std::size_t>(D), 3.0)};
  Sums plain = fast;
  const auto of = [&](Sums& sums) {
    return TileGradients<T>{
        {sums.dq.data(), kQueries, scored.D}, {sums.dk.data(), kKeys, scored.D}, sums.dv.data()};
  };
  for (index r = 0; r < kQueries; ++r) {
    for (index c = 0; c < kKeys; ++c) {
      const T dscore = ds[static_cast<std::size_t>(r * kStride + c)];
      const T left = part->pull_one(site.at(r, c), rows.at(r, c), T{0}, dscore, of(plain).at(r, c));
      EXPECT_EQ(left, 0);
    }
  }
  const ScoreTile<T> dscores{ds.data(), kStride, TileLanes::kKeys};
  part->pull(site, rows, dscores, dscores, of(fast));
  const double bound = 200 * static_cast<double>(std::numeric_limits<T>::epsilon());
  const auto compare = [&](const auto& a, const auto& b) {
    for (std::size_t n = 0; n < a.size(); ++n) EXPECT_NEAR(a[n], b[n], bound);
  };
  compare(fast.dq, plain.dq);
  compare(fast.dk, plain.dk);
  compare(fast.dv, plain.dv);
  for (index r = 0; r < kQueries; ++r) EXPECT_EQ(dscores.at(r, 5), 0);
}

template <class T>
void expect_the_definition() {
  for (const index D : {1, 5, 16, 40}) {
    const std::vector<T> v = normals<T>(4, 2 * D);
    std::vector<T> dv(v.size());
    for (const Attention<T>& attention : {additive(v, dv, D), {.score = score::L2()}}) {
      const ScoredTile<T> scored(attention, D);
      expect_tiles_of_the_definition(scored);
      expect_gradients_of_the_definition(scored);
    }
  }
}

TEST(PairScore, TilesAreTheDefinition) {
  for_each_isa([] {
    expect_the_definition<float>();
    expect_the_definition<double>();
  });
}

// A score of one's own: the sum of the products of absolute values.
class Manners final : public BiasPart<double> {
 public:
  double apply_one(const ScoreSite&, const ScoreRows<double>& rows, double) const override {
    double sum = 0;
    for (index c = 0; c < rows.q.size; ++c) sum += std::abs(rows.q[c]) * std::abs(rows.k[c]);
    return rows.scale * sum;
  }
  double pull_one(const ScoreSite&, const ScoreRows<double>& rows, double, double dscore,
                  const ScoreGradients<double>& gradients) const override {
    for (index c = 0; c < rows.q.size; ++c) {
      const double d = rows.scale * dscore;
      gradients.dq[c] += d * std::copysign(std::abs(rows.k[c]), rows.q[c]);
      gradients.dk[c] += d * std::copysign(std::abs(rows.q[c]), rows.k[c]);
    }
    return 0;
  }
  bool makes_score() const override { return true; }
  std::string name() const override { return "manners"; }
};

TEST(PairScore, AUserMayMakeTheScoreToo) {
  for (const Method method : {Method::kFused, Method::kReference}) {
    Call<double> call({.B = 1, .T = 5, .S = 7, .H = 2, .G = 1, .D = 4, .Dv = 2}, 5);
    const Bias<double> bias = Manners() + bias::Softcap<double>(2);
    expect_gradients(call, {.bias = bias, .mask = mask::Causal()}, {}, method);
  }
}

TEST(PairScore, WhatMakesTheScoreStandsFirst) {
  Call<double> call({.T = 3, .S = 3, .D = 4, .Dv = 2});
  const Bias<double> second = bias::Softcap<double>(2) + Manners();
  EXPECT_THROWS(call.forward({.bias = second}), kOptionValue,
                "manners makes the score, so it must stand first; it follows softcap");
  EXPECT_THROWS(call.forward({.score = score::L2(), .bias = Manners()}), kOptionValue,
                "it follows l2");
}

TEST(PairScore, ThePlanNamesTheScoreAndTheBiasThatWereAskedFor) {
  Call<float> call({.T = 3, .S = 3, .D = 4, .Dv = 2});
  const Attention<float> attention{
      .score = score::L2(), .bias = bias::Softcap<float>(2), .rotary = {RotaryPairs::kHalves, 100}};
  const AttentionPlan plan = attention_plan(Context(1), attention, call.in());
  EXPECT_EQ(plan.score, "l2 with rotary positions");
  EXPECT_EQ(plan.bias, "softcap(2)");
  EXPECT_EQ(plan.kernel, "fused float32");
}

// Keys and values that a mask refuses may hold anything.
TEST(PairScore, PoisonIsNotRead) {
  std::vector<float> v = normals<float>(4, 8), dv(8);
  for (const Attention<float>& asked : {additive(v, dv, 8), {.score = score::L2()}}) {
    Attention<float> attention = asked;
    attention.mask = mask::Causal();
    Call<float> clean({.T = 70, .S = 70, .D = 8, .Dv = 8}, 3), non_finite = clean;
    std::fill_n(non_finite.k_row(0, 69, 0), 8, NAN);
    std::fill_n(non_finite.v_row(0, 69, 0), 8, NAN);
    std::fill_n(clean.d_o.end() - 8, 8, 0.0f);
    std::fill_n(non_finite.d_o.end() - 8, 8, 0.0f);
    clean.run(attention);
    non_finite.run(attention);
    for (index i = 0; i < 69 * 8; ++i) {
      const auto n = static_cast<std::size_t>(i);
      EXPECT_EQ(clean.o[n], non_finite.o[n]);
      EXPECT_EQ(clean.dq[n], non_finite.dq[n]);
    }
  }
}

}  // namespace
}  // namespace fovea::testing
