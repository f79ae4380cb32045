// SPDX-License-Identifier: Apache-2.0
// Heads against plain loops: QK-norm, and what is seen of them.
#include <gtest/gtest.h>

#include <numeric>
#include <vector>

#include "fovea/attention/mask/band.h"
#include "fovea/attention/reference.h"
#include "tests/nn/attention_support.h"

namespace fovea {
namespace {

// Scaling the projections of q and k changes nothing with QK-norm, and much without.
TEST(MultiHeadAttention, QkNormMakesTheScaleOfQueriesAndKeysIrrelevant) {
  const auto change = [](QkNorm norm) {
    ParameterSet set({});
    Options o = options(2);
    o.bias = Biases::kNone;
    o.qk_norm = norm;
    const MultiHeadAttention layer(o, ParameterScope(set));
    randomise(set);
    const auto x = noise(N * C);
    const auto before = output_of([&](Tape& t) { return self(t, layer, x); });
    const auto qkv = set.find("qkv.weight")->value.rows<float>();
    for (index row = 0; row < 2 * C; ++row) {  // of q and k, not of v
      for (index c = 0; c < C; ++c) qkv[row][c] *= 64;
    }
    ++set.find("qkv.weight")->version;
    const auto after = output_of([&](Tape& t) { return self(t, layer, x); });
    float largest = 0, difference = 0;
    for (std::size_t n = 0; n < before.size(); ++n) {
      largest = std::max(largest, std::abs(before[n]));
      difference = std::max(difference, std::abs(after[n] - before[n]));
    }
    return difference / largest;
  };
  EXPECT_LE(change(QkNorm::kRms), 1e-3);
  EXPECT_GE(change(QkNorm::kNone), 0.1);
}

// q and k of each head, divided by their root mean square, times the gains.
TEST(MultiHeadAttention, QkNormByItsFormula) {
  ParameterSet set({});
  Options o = options(2);
  o.kv_heads = 1;
  o.bias = Biases::kNone;
  o.output = OutputProjection::kNone;
  o.qk_norm = QkNorm::kRms;
  const MultiHeadAttention layer(o, ParameterScope(set));
  randomise(set);
  const index D = C / 2;
  EXPECT_EQ(set.find("k_norm.weight")->value.shape(), Shape({D}));
  const auto x = noise(N * C);
  const auto y = output_of([&](Tape& t) { return self(t, layer, x); });
  const auto w = set.find("qkv.weight")->value.rows<float>();  // rows: two heads of q, k, v
  const auto row_of = [&](index n, index first, const char* gain) {
    std::vector<double> row(static_cast<std::size_t>(D));
    double square = 0;
    for (index d = 0; d < D; ++d) {
      double& value = row[static_cast<std::size_t>(d)];
      for (index c = 0; c < C; ++c) {
        value += double{w[first + d][c]} * double{x[static_cast<std::size_t>(n * C + c)]};
      }
      square += value * value;
    }
    if (gain == nullptr) return row;
    const auto g = set.find(gain)->value.vec<float>();
    const double rms = std::sqrt(square / static_cast<double>(D) + 1e-5);
    for (index d = 0; d < D; ++d) row[static_cast<std::size_t>(d)] *= double{g[d]} / rms;
    return row;
  };
  for (index h = 0; h < 2; ++h) {
    for (index i = 0; i < N; ++i) {
      const auto q = row_of(i, h * D, "q_norm.weight");
      double total = 0;
      std::vector<double> o_i(static_cast<std::size_t>(D));
      for (index j = 0; j < N; ++j) {
        const auto k = row_of(j, 2 * D, "k_norm.weight"), v = row_of(j, 3 * D, nullptr);
        const double dot = std::inner_product(q.begin(), q.end(), k.begin(), 0.0);
        const double p = std::exp(dot / std::sqrt(static_cast<double>(D)));
        total += p;
        for (std::size_t d = 0; d < v.size(); ++d) o_i[d] += p * v[d];
      }
      for (index d = 0; d < D; ++d) {
        EXPECT_NEAR(y[static_cast<std::size_t>(i * C + h * D + d)],
                    o_i[static_cast<std::size_t>(d)] / total, 1e-5);
      }
    }
  }
}

// Against the weights of a plain softmax of the same scores.
TEST(MultiHeadAttention, SeesTheEntropyOfItsHeads) {
  ParameterSet set({});
  Options o = options(2);
  o.mask = mask::Causal();
  const MultiHeadAttention layer(o, ParameterScope(set));
  randomise(set);
  const auto x = noise(N * C);
  HeadStatistics seen;
  Tape tape(Context(2), TapeMode::kInference);
  const Variable in = tape.constant(Rows<const float>(x.data(), N, C));
  const auto y = to_vector(layer.forward(tape, in, {}, {}, &seen).value<float>());
  EXPECT_EQ(y, output_of([&](Tape& t) { return self(t, layer, x); }));
  EXPECT_EQ(seen.queries, N);
  const Variable qkv = linear(tape, in, tape.parameter(*set.find("qkv.weight")),
                              tape.parameter(*set.find("qkv.bias")));
  const Rows<const float> rows = qkv.value<float>();
  const index D = C / 2;
  for (index h = 0; h < 2; ++h) {
    double entropy = 0, largest = -HUGE_VAL, distance = 0;
    for (index i = 0; i < N; ++i) {
      std::vector<double> scores;
      for (index j = 0; j <= i; ++j) {
        double dot = 0;
        for (index c = 0; c < D; ++c) {
          dot += double{rows[i][h * D + c]} * double{rows[j][C + h * D + c]};
        }
        scores.push_back(dot / std::sqrt(static_cast<double>(D)));
      }
      double total = 0;
      for (const double s : scores) total += std::exp(s), largest = std::max(largest, s);
      for (index j = 0; j <= i; ++j) {
        const double w = std::exp(scores[static_cast<std::size_t>(j)]) / total;
        entropy -= w * std::log(w);
        distance += w * static_cast<double>(i - j);
      }
    }
    const auto at = static_cast<std::size_t>(h);
    EXPECT_NEAR(seen.entropy[at], entropy, 1e-4);
    EXPECT_NEAR(seen.max_logit[at], largest, 1e-4);
    EXPECT_NEAR(seen.distance[at], distance, 1e-4);
  }
  o.variant.norm = AttentionNormKind::kSigmoid;
  ParameterSet other({});
  HeadStatistics less;
  MultiHeadAttention(o, ParameterScope(other)).forward(tape, in, {}, {}, &less);
  EXPECT_TRUE(less.entropy.empty());
  EXPECT_EQ(less.max_logit.size(), 2u);
}

// The weights before dropout, against the plain definition in double, whatever the norm.
TEST(MultiHeadAttention, KeepsTheWeightsOfItsHeads) {
  for (const auto& [norm, name] : enum_names(AttentionNormKind())) {
    ParameterSet set({});
    Options o = options(2);
    o.mask = mask::Causal();
    o.variant.norm = norm;
    o.dropout = 0.5;
    const MultiHeadAttention layer(o, ParameterScope(set));
    randomise(set);
    const auto x = noise(N * C);
    HeadStatistics seen{.keeps_weights = true};
    Tape tape(Context(2), TapeMode::kTrain);
    const Variable in = tape.constant(Rows<const float>(x.data(), N, C));
    layer.forward(tape, in, whole(tape), {}, &seen);
    const Variable qkv = linear(tape, in, tape.parameter(*set.find("qkv.weight")),
                                tape.parameter(*set.find("qkv.bias")));
    const auto rows = to_vector(qkv.value<float>());
    const std::vector<double> wide(rows.begin(), rows.end());
    const auto head_view = [&](index first) {
      return View<const double>{wide.data() + first, 1, N, 2, C / 2, 3 * C * N, 3 * C, C / 2};
    };
    Attention<double> plain{.mask = mask::Causal()};
    if (norm == AttentionNormKind::kSigmoid) plain.norm = norm::Sigmoid{};
    if (norm == AttentionNormKind::kNone) plain.norm = norm::None{};
    std::vector<double> y(N * C), weights(2 * N * N);
    attention_reference_forward<double>(
        plain, {head_view(0), head_view(C), head_view(2 * C)},
        {.o = View<double>::contiguous(y.data(), 1, N, 2, C / 2),
         .weights = ScoreView<double>::contiguous(weights.data(), 1, 2, N, N)});
    ASSERT_EQ(seen.weights.size(), weights.size()) << name;
    for (std::size_t n = 0; n < weights.size(); ++n) {
      EXPECT_NEAR(seen.weights[n], weights[n], 1e-6 * std::max(1.0, std::abs(weights[n]))) << name;
    }
    EXPECT_EQ(seen.weights[1], 0) << name;  // masked
  }
}

// Long enough for linear attention, which has no norm.
TEST(MultiHeadAttention, SeeingItsHeadsChangesNoBit) {
  for (const auto& [norm, name] : enum_names(AttentionNormKind())) {
    ParameterSet set({});
    Options o = options(2);
    o.mask = mask::Causal();
    o.variant.norm = norm;
    const MultiHeadAttention layer(o, ParameterScope(set));
    randomise(set);
    constexpr index kRows = 700;
    const auto x = noise(kRows * C);
    const auto y = [&](HeadStatistics* seen) {
      return output_of([&](Tape& t) {
        const Variable in = t.constant(Rows<const float>(x.data(), kRows, C));
        return layer.forward(t, in, {}, {}, seen);
      });
    };
    HeadStatistics seen;
    EXPECT_EQ(y(&seen), y(nullptr)) << name;
    EXPECT_EQ(seen.queries, kRows);
    EXPECT_TRUE(seen.weights.empty());
    HeadStatistics kept{.keeps_weights = true};
    EXPECT_EQ(y(&kept), y(nullptr)) << name;
    EXPECT_EQ(kept.weights.size(), std::size_t{2 * kRows * kRows});
    ASSERT_EQ(seen.max_logit.size(), 2u);
    EXPECT_TRUE(std::isfinite(seen.max_logit[1])) << name;
  }
}

}  // namespace
}  // namespace fovea
