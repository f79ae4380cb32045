// SPDX-License-Identifier: Apache-2.0
#include "fovea/attention/reference_score.h"

#include <gmock/gmock.h>

#include <cmath>
#include <limits>
#include <numbers>

#include "tests/attention/support/call.h"

namespace fovea::testing {
namespace {

using ::testing::DoubleNear;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::Pointwise;

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

// reference_test.cc has the scores and their gradients by hand; here is what a call does not show.

TEST(ReferenceScore, RotatesAndBack) {
  // The first pair turns by a radian for each position; the second by a quarter turn.
  constexpr double kBase = 4 / (std::numbers::pi * std::numbers::pi);
  const double cosine = std::cos(3.0), sine = std::sin(3.0);
  std::vector<double> row = {1, 2, 3, 4};
  detail::rotate<double>({RotaryPairs::kInterleaved, kBase}, 3, row);
  EXPECT_THAT(row, Pointwise(DoubleNear(1e-14), {cosine - 2 * sine, sine + 2 * cosine, 4.0, -3.0}));
  detail::rotate<double>({RotaryPairs::kInterleaved, kBase}, -3, row);
  EXPECT_THAT(row, Pointwise(DoubleNear(1e-14), {1.0, 2.0, 3.0, 4.0}));
  detail::rotate<double>({RotaryPairs::kHalves, kBase}, 3, row);
  EXPECT_THAT(row, Pointwise(DoubleNear(1e-14), {cosine - 3 * sine, 4.0, sine + 3 * cosine, -2.0}));
}

TEST(ReferenceScore, CallsWithoutRotaryPositionsAreNotCopied) {
  Call<double> call({.T = 3, .S = 3, .D = 4});
  const std::vector<Sequence> sequences = {{.queries = 3, .keys = 3}};
  const detail::RotatedRows<double> same({}, sequences, call.in());
  EXPECT_EQ(same.in().q.data, call.q.data());
  const detail::RotatedRows<double> rotated({RotaryPairs::kHalves}, sequences, call.in());
  EXPECT_NE(rotated.in().q.data, call.q.data());
  EXPECT_EQ(rotated.in().v.data, call.v.data());
}

// A query, a key, their gradients and those of four weights.
struct Rows4 {
  std::vector<double> q, k, dq = {0, 0}, dk = {0, 0}, dw = {0, 0, 0, 0};

  ScoreRows<double> rows(double scale) const { return {q, k, scale}; }
  ScoreGradients<double> gradients() { return {dq, dk, dw.data()}; }
};

const std::vector<double> kWeights = {1, 2, 3, 4};
const score::Concat<double> kConcat{{kWeights.data(), 1, 4}};
const score::Additive<double> kAdditive{{kWeights.data(), 1, 2}};

TEST(ReferenceScore, WhatBiasesSee) {
  const Rows4 of{{3, 4}, {5, 12}};
  for (const Score<double>& score :
       {Score<double>(score::Dot()), Score<double>(score::L2()), Score<double>(kAdditive)}) {
    const detail::SeenRows<double> seen = detail::seen_rows(score, 0, of.rows(1));
    EXPECT_EQ(seen.in_place_of(of.rows(1)).q.data, of.q.data());
    EXPECT_EQ(seen.in_place_of(of.rows(1)).k.data, of.k.data());
  }
  const detail::SeenRows<double> units = detail::seen_rows<double>(score::Cosine(), 0, of.rows(1));
  EXPECT_THAT(units.q, ElementsAre(3.0 / 5, 4.0 / 5));
  EXPECT_THAT(units.k, ElementsAre(5.0 / 13, 12.0 / 13));
  const detail::SeenRows<double> made = detail::seen_rows<double>(kConcat, 0, of.rows(1));
  EXPECT_THAT(made.q, ElementsAre(1 * 3 + 2 * 4, 3, 4));
  EXPECT_THAT(made.k, ElementsAre(1, 5, 12));
}

TEST(ReferenceScore, WhatBiasesAddToTheGradients) {
  // Along the row (0, 1) nothing, across it all, by the length of the row.
  Rows4 cosine{{0, 5}, {0, 2}, {10, 20}, {30, 40}};
  detail::pull_seen_rows<double>(score::Cosine(), 0, cosine.rows(1), {{5, 7}, {3, 8}},
                                 cosine.gradients());
  EXPECT_THAT(cosine.dq, ElementsAre(11, 20));
  EXPECT_THAT(cosine.dk, ElementsAre(31.5, 40));
  Rows4 concat{{3, 4}, {5, 12}, {10, 20}, {30, 40}, {1, 1, 1, 1}};
  detail::pull_seen_rows<double>(kConcat, 0, concat.rows(1), {{2, 5, 7}, {9, 6, 8}},
                                 concat.gradients());
  EXPECT_THAT(concat.dq, ElementsAre(10 + 2 * 1, 20 + 2 * 2));
  EXPECT_THAT(concat.dk, ElementsAre(36, 48));
  EXPECT_THAT(concat.dw, ElementsAre(1 + 2 * 3, 1 + 2 * 4, 1 + 5, 1 + 7));
}

// As in the kernels, which write 0 for a row without a gradient.
TEST(ReferenceScore, ARowWithoutAGradientGetsNoneWhateverItHolds) {
  for (const Score<double>& score : {Score<double>(score::Cosine()), Score<double>(kConcat),
                                     Score<double>(score::L2()), Score<double>(kAdditive)}) {
    SCOPED_TRACE(name_of(score));
    Rows4 of{{kNaN, std::numeric_limits<double>::infinity()}, {1, 2}};
    const std::size_t width = detail::seen_rows(score, 0, of.rows(1)).q.size();
    detail::pull_seen_rows(score, 0, of.rows(1),
                           {std::vector<double>(width), std::vector<double>(width)},
                           of.gradients());
    EXPECT_THAT(of.dq, Each(0));
    EXPECT_THAT(of.dk, Each(0));
    detail::pull_reference_score(score, 0, of.rows(1), 0.0, of.gradients());
    EXPECT_THAT(of.dq, Each(0));
    EXPECT_THAT(of.dw, Each(0));
  }
}

TEST(ReferenceScore, ARowOfZerosHasCosineZeroAndNoGradient) {
  Rows4 of{{0, 0}, {1, 2}};
  EXPECT_EQ(detail::reference_score<double>(score::Cosine(), 0, of.rows(3)), 0);
  detail::pull_reference_score<double>(score::Cosine(), 0, of.rows(3), 5, of.gradients());
  EXPECT_THAT(of.dq, Each(0));
  EXPECT_THAT(of.dk, Each(0));
}

}  // namespace
}  // namespace fovea::testing
