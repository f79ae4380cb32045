// SPDX-License-Identifier: Apache-2.0
// The losses of vectors against plain loops in double, and their gradients by the checker.
#include "fovea/model/vector_losses.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <span>
#include <vector>

#include "fovea/reference/gradcheck.h"

namespace fovea {
namespace {

constexpr std::int32_t kAnchors[] = {0, 1, 2}, kCandidates[] = {3, 4, 5, 6};
constexpr std::uint8_t kLeftOut[] = {0, 0, 1, 0,  //
                                     0, 0, 0, 0,  //
                                     1, 0, 0, 0};
constexpr float kScores[] = {1, 3, 2};
constexpr index kColumns[] = {5, 2};

RankedTexts ranked() {
  return {.anchors = {kAnchors, 3}, .candidates = {kCandidates, 4}, .left_out = {kLeftOut, 12}};
}
ScoredTexts scored() {
  return {.first = {kAnchors, 3}, .second = {kCandidates, 3}, .scores = {kScores, 3}};
}

double cosine_of(Rows<const double> x, index a, index b, index columns) {
  double ab = 0, aa = 0, bb = 0;
  for (index c = 0; c < columns; ++c) {
    ab += x[a][c] * x[b][c];
    aa += x[a][c] * x[a][c];
    bb += x[b][c] * x[b][c];
  }
  return ab / std::sqrt(aa * bb);
}

double ranking_by_hand(Rows<const double> x, index columns) {
  double loss = 0;
  for (index i = 0; i < 3; ++i) {
    double total = 0;
    for (index j = 0; j < 4; ++j) {
      if (kLeftOut[i * 4 + j] == 0) total += std::exp(cosine_of(x, i, 3 + j, columns) / 0.1);
    }
    loss += std::log(total) - cosine_of(x, i, 3 + i, columns) / 0.1;
  }
  return 0.5 * loss;
}

double similarity_by_hand(Rows<const double> x, index columns) {
  double total = 1;
  for (index i = 0; i < 3; ++i) {
    for (index j = 0; j < 3; ++j) {
      if (!(kScores[i] < kScores[j])) continue;
      total += std::exp((cosine_of(x, i, 3 + i, columns) - cosine_of(x, j, 3 + j, columns)) / 0.1);
    }
  }
  return 0.5 * std::log(total);
}

constexpr VectorLossOptions kOptions{.temperature = 0.1, .scale = 0.5};

using Inputs = std::span<const Variable>;
using Matrices = std::span<const Rows<const double>>;

constexpr GradientCase kCases[] = {
    {"ranking",
     {{7, 5}},
     [](Tape& t, Inputs in) { return ranking_loss(t, in[0], ranked(), kOptions); },
     [](Matrices in, Rows<double> y) { y[0][0] = ranking_by_hand(in[0], 5); }},
    {"similarity",
     {{7, 5}},
     [](Tape& t, Inputs in) { return similarity_loss(t, in[0], scored(), kOptions); },
     [](Matrices in, Rows<double> y) { y[0][0] = similarity_by_hand(in[0], 5); }},
    {"ranking_of_first_columns",
     {{7, 5}},
     [](Tape& t, Inputs in) {
       VectorLossOptions options = kOptions;
       options.columns = kColumns;
       return ranking_loss(t, in[0], ranked(), options);
     },
     [](Matrices in, Rows<double> y) {
       y[0][0] = ranking_by_hand(in[0], 5) + ranking_by_hand(in[0], 2);
     }},
    {"similarity_of_first_columns",
     {{7, 5}},
     [](Tape& t, Inputs in) {
       VectorLossOptions options = kOptions;
       options.columns = kColumns;
       return similarity_loss(t, in[0], scored(), options);
     },
     [](Matrices in, Rows<double> y) {
       y[0][0] = similarity_by_hand(in[0], 5) + similarity_by_hand(in[0], 2);
     }},
};

TEST(VectorLosses, LossesAndGradientsAreThoseOfPlainLoops) {
  for (const GradientCase& c : kCases) {
    const CaseReport report = check_case(Context(1), c);
    EXPECT_LT(report.gradient.error, 1e-7) << c.name << ": " << report.gradient.where;
    EXPECT_LT(report.reference_error, 1e-12) << c.name;
    EXPECT_LT(report.float32_error, 1e-5) << c.name;
    EXPECT_LT(report.float32_gradient_error, 1e-4) << c.name;
  }
}

TEST(VectorLosses, WhatIsLeftOutHasNoGradient) {
  std::vector<float> values(35);
  for (std::size_t n = 0; n < values.size(); ++n) {
    values[n] = static_cast<float>((n * 7) % 11) - 4.5f;
  }
  // One anchor, and one other candidate, which is left out.
  constexpr std::int32_t candidates[] = {3, 4};
  constexpr std::uint8_t left_out[] = {0, 1};
  Tape tape(Context(1));
  const Variable x = tape.input(Rows<const float>(values.data(), 7, 5));
  const Variable loss = ranking_loss(
      tape, x, {.anchors = {kAnchors, 1}, .candidates = {candidates, 2}, .left_out = {left_out, 2}},
      {});
  EXPECT_EQ(loss.value<float>()[0][0], 0);
  tape.backward(loss);
  const Rows<const float> slopes = x.gradient<float>();
  for (index n = 0; n < 7; ++n) {
    for (index c = 0; c < 5; ++c) EXPECT_EQ(slopes[n][c], 0) << n << " " << c;
  }
}

}  // namespace
}  // namespace fovea
