// SPDX-License-Identifier: Apache-2.0
#include "fovea/nn/attentive_gru.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/nn/support.h"
#include "tests/support/throws.h"

namespace fovea {
namespace {

constexpr index C = 3, W = 4, H = 5, N = 6, M = 7;
constexpr std::int32_t kTargets[] = {0, 2, 3, 6}, kSentences[] = {0, 3, 4, 7};

PackedRows packed(const std::int32_t* offsets) {
  PackedRows rows;
  rows.offsets = {offsets, 4};
  return rows;
}

Variable constant(Tape& tape, const std::vector<double>& values, index columns) {
  const auto rows = static_cast<index>(values.size()) / columns;
  return tape.constant(Rows<const double>(values.data(), rows, columns));
}

AttentiveGruOptions options() { return {.in = C, .source = W, .hidden = H, .out = 2}; }

Variable forward(Tape& tape, const AttentiveGru& gru, const std::vector<double>& y,
                 const std::vector<double>& source, HeadStatistics* seen = nullptr) {
  const Variable rows = constant(tape, source, W);
  return gru.forward(tape, constant(tape, y, C), packed(kTargets),
                     gru.read(tape, rows, packed(kSentences)), seen);
}

// A matrix of the layer times a vector, plus a bias if there is one.
std::vector<double> times(const ParameterSet& set, const std::string& name,
                          const std::vector<double>& x) {
  const Rows<const double> w = set.find(name + ".weight")->value.rows<double>();
  const Parameter* const bias = set.find(name + ".bias");
  std::vector<double> y(static_cast<std::size_t>(w.rows));
  for (index n = 0; n < w.rows; ++n) {
    double sum = bias == nullptr ? 0 : bias->value.vec<double>()[n];
    for (index c = 0; c < w.columns; ++c) sum += w[n][c] * x[static_cast<std::size_t>(c)];
    y[static_cast<std::size_t>(n)] = sum;
  }
  return y;
}

double sigma(double x) { return 1 / (1 + std::exp(-x)); }

// The formulas of the header, sentence by sentence and step by step.
std::vector<double> plain(const ParameterSet& set, const std::vector<double>& y,
                          const std::vector<double>& source) {
  const auto row = [](const std::vector<double>& of, index n, index width) {
    const auto at = of.begin() + n * width;
    return std::vector<double>(at, at + width);
  };
  const auto v = set.find("score_v")->value.vec<double>();
  std::vector<double> result;
  for (int s = 0; s < 3; ++s) {
    std::vector<double> state = times(set, "start", row(source, kSentences[s], W));
    for (double& x : state) x = std::tanh(x);
    for (index i = kTargets[s]; i < kTargets[s + 1]; ++i) {
      const std::vector<double> query = times(set, "query", state);
      std::vector<double> context(W);
      double total = 0;
      for (index j = kSentences[s]; j < kSentences[s + 1]; ++j) {
        const std::vector<double> h = row(source, j, W), key = times(set, "key", h);
        double score = 0;
        for (index c = 0; c < H; ++c) {
          const auto k = static_cast<std::size_t>(c);
          score += v[c] * std::tanh(query[k] + key[k]);
        }
        total += std::exp(score);
        for (std::size_t c = 0; c < W; ++c) context[c] += std::exp(score) * h[c];
      }
      for (double& x : context) x /= total;
      const auto in = times(set, "input", row(y, i, C)), more = times(set, "context", context),
                 hid = times(set, "hidden", state);
      for (std::size_t c = 0; c < H; ++c) {
        const double r = sigma(in[c] + more[c] + hid[c]),
                     z = sigma(in[H + c] + more[H + c] + hid[H + c]),
                     n = std::tanh(in[2 * H + c] + more[2 * H + c] + r * hid[2 * H + c]);
        state[c] = (1 - z) * n + z * state[c];
      }
      std::vector<double> all = state;
      all.insert(all.end(), context.begin(), context.end());
      for (const double x : row(y, i, C)) all.push_back(x);
      for (const double x : times(set, "out", all)) result.push_back(std::tanh(x));
    }
  }
  return result;
}

TEST(AttentiveGru, IsThatOfTheFormulas) {
  auto set = float64_set();
  const AttentiveGru gru(options(), ParameterScope(set));
  const auto y = noise<double>(N * C), source = noise<double>(M * W, 1);
  Tape tape(Context(2), TapeMode::kInference);
  const Rows<const double> found = forward(tape, gru, y, source).value<double>();
  const std::vector<double> expected = plain(set, y, source);
  ASSERT_EQ(found.rows * found.columns, static_cast<index>(expected.size()));
  for (index n = 0; n < N; ++n) {
    for (index c = 0; c < 2; ++c) {
      EXPECT_NEAR(found[n][c], expected[static_cast<std::size_t>(2 * n + c)], 1e-12);
    }
  }
}

TEST(AttentiveGru, GradientIsThatOfTheForward) {
  auto set = float64_set();
  const AttentiveGru gru(options(), ParameterScope(set));
  const auto y = noise<double>(N * C), source = noise<double>(M * W, 1);
  expect_gradients(set, [&](Tape& tape) { return forward(tape, gru, y, source); });
}

TEST(AttentiveGru, WeightsOfAllStepsAreObserved) {
  auto set = float64_set();
  const AttentiveGru gru(options(), ParameterScope(set));
  HeadStatistics seen;
  seen.keeps_weights = true;
  Tape tape(Context(1), TapeMode::kInference);
  const auto y = noise<double>(N * C), source = noise<double>(M * W, 1);
  forward(tape, gru, y, source, &seen);
  EXPECT_EQ(seen.queries, N);
  ASSERT_EQ(seen.weights.size(), static_cast<std::size_t>(N * M));
  for (index n = 0; n < N; ++n) {  // to the rows of its own sentence
    const int s = n < 2 ? 0 : n < 3 ? 1 : 2;
    double inside = 0;
    for (index m = kSentences[s]; m < kSentences[s + 1]; ++m) {
      inside += double{seen.weights[static_cast<std::size_t>(n * M + m)]};
    }
    EXPECT_NEAR(inside, 1, 1e-6);
  }
}

TEST(AttentiveGru, NamesWhatDoesNotFit) {
  auto set = float64_set();
  const AttentiveGru gru(options(), ParameterScope(set));
  Tape tape(Context(1), TapeMode::kInference);
  const auto y = noise<double>(N * C), source = noise<double>(M * W);
  const Variable rows = constant(tape, source, W);
  EXPECT_THROWS(
      gru.forward(tape, constant(tape, y, C), {}, gru.read(tape, rows, packed(kSentences))), kShape,
      "1 targets for 3 sentences");
}

}  // namespace
}  // namespace fovea
