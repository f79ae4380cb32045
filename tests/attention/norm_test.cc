// SPDX-License-Identifier: Apache-2.0
#include "fovea/attention/norm.h"

#include <gmock/gmock.h>

#include <cmath>
#include <functional>

#include "tests/attention/support/gradients.h"
#include "tests/attention/support/table.h"
#include "tests/isa.h"
#include "tests/support/throws.h"

namespace fovea::testing {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

TEST(Norm, SaysWhatItIs) {
  EXPECT_EQ(name_of(norm::Softmax()), "softmax");
  EXPECT_EQ(name_of(norm::Sigmoid()), "sigmoid");
  EXPECT_EQ(name_of(norm::None()), "none");
}

TEST(Norm, OfOneRow) {
  const RowNorm<double> plain, sink{.sink = 3}, sigmoid{.norm = norm::Sigmoid()},
      none{.norm = norm::None()};
  // Scores 1 and 2: m = 2, l = 1 + exp(-1).
  const double m = 2, l = 1 + std::exp(-1.0);
  EXPECT_DOUBLE_EQ(plain.weight(1, m, l), std::exp(1) / (std::exp(1) + std::exp(2)));
  EXPECT_DOUBLE_EQ(plain.lse(m, l).value, std::log(std::exp(1) + std::exp(2)));
  const double total = std::exp(1) + std::exp(2) + std::exp(3);
  EXPECT_DOUBLE_EQ(sink.weight(1, m, l), std::exp(1) / total);
  EXPECT_DOUBLE_EQ(sink.lse(m, l).value, std::log(total));
  EXPECT_DOUBLE_EQ(sigmoid.weight(-1, m, l), 1 / (1 + std::exp(1)));
  EXPECT_DOUBLE_EQ(sigmoid.weight(2, m, l), 1 / (1 + std::exp(-2)));
  EXPECT_EQ(none.weight(-1.5, m, l), -1.5);
  for (const auto& norm : {plain, sink, sigmoid, none}) EXPECT_EQ(norm.weight(-kInfinity, m, l), 0);
}

TEST(Norm, ARowWithoutKeysHasTheSink) {
  const double nothing = std::numeric_limits<double>::lowest();
  EXPECT_EQ(RowNorm<double>().lse(nothing, 0).value, -kInfinity);
  EXPECT_EQ(RowNorm<double>{.sink = -7}.lse(nothing, 0).value, -7);
  const float lowest = std::numeric_limits<float>::lowest();
  EXPECT_EQ(RowNorm<float>{.sink = 2}.lse(lowest, 0).value, 2);
  // A sink far above every score: its exponential overflows, the log-sum-exp does not.
  EXPECT_EQ(RowNorm<float>{.sink = 500}.lse(0, 3).value, 500);
  EXPECT_EQ(RowNorm<float>{.sink = 500}.weight(0, 0, 3), 0);
}

// One query, two keys of one value each: o by hand.
TEST(Norm, WhatComesOutByHand) {
  const std::vector<double> sink = {0.5};
  const auto output = [&](const Attention<double>& attention, Method method) {
    Call<double> call({.S = 2});
    call.q = {2};
    call.k = {1, -0.5};  // scores 2 and -1
    call.v = {10, 4};
    call.forward(attention, method);
    return call.o[0];
  };
  for (const Method method : {Method::kReference, Method::kFused}) {
    EXPECT_DOUBLE_EQ(output({.norm = norm::None()}, method), 2 * 10 - 1 * 4);
    EXPECT_DOUBLE_EQ(output({.norm = norm::Sigmoid()}, method),
                     10 / (1 + std::exp(-2)) + 4 / (1 + std::exp(1)));
    EXPECT_DOUBLE_EQ(
        output({.sink = {{sink.data(), 1}}}, method),
        (10 * std::exp(2) + 4 * std::exp(-1)) / (std::exp(2) + std::exp(-1) + std::exp(0.5)));
  }
}

// Both parts together are exact, also where one number holds nothing of log l.
TEST(Norm, LogSumExpHasTwoParts) {
  for (const double m : {0.0, 0.1, -3.0, 150.0, 1e8, -1e30}) {
    const RowNorm<float> floats;
    const RowNorm<double> doubles;
    const auto rounded = static_cast<float>(m);
    const RowLse<float> of_floats = floats.lse(rounded, 66);
    const RowLse<double> of_doubles = doubles.lse(m, 66);
    EXPECT_EQ(of_floats.value, static_cast<float>(static_cast<double>(rounded) + std::log(66.0)));
    EXPECT_NEAR((static_cast<double>(of_floats.value) - static_cast<double>(rounded)) +
                    static_cast<double>(of_floats.low),
                std::log(66.0), 1e-6);
    EXPECT_NEAR((of_doubles.value - m) + of_doubles.low, std::log(66.0), 1e-15);
  }
  const RowLse<float> empty = RowNorm<float>().lse(std::numeric_limits<float>::lowest(), 0);
  EXPECT_EQ(empty.value, -std::numeric_limits<float>::infinity());
  EXPECT_EQ(empty.low, 0);
}

// The whole backward by central differences of the fused forward.
TEST(Norm, GradientsAreThoseOfTheForward) {
  for (const auto& row : norm_table<double>()) {
    SCOPED_TRACE(row.name);
    PartData<double> parts;
    Call<double> call({.B = 2, .T = 7, .S = 9, .H = 2, .G = 1, .D = 3, .Dv = 2}, 5);
    Attention<double> attention{.mask = mask::Causal(), .dropout = {.probability = 0.25}};
    row.set(attention, parts);
    std::vector<CheckedGradient> more;
    if (!attention.sink.logits.empty()) more.push_back({"sink", parts.sink, parts.dsink});
    expect_gradients(call, attention, more);
  }
}

struct FloatResults {
  Call<float> call;
  PartData<float> parts;
};

FloatResults run_float(const NormRow<float>& row, const Sizes& sizes, Method method, int threads) {
  FloatResults results{Call<float>(sizes, 3), {}};
  Attention<float> attention{.mask = mask::Causal(), .dropout = {.probability = 0.1}};
  row.set(attention, results.parts);
  results.call.run(attention, method, threads);
  return results;
}

template <class V>
std::vector<double> doubles(const std::vector<V>& values) {
  return {values.begin(), values.end()};
}

// The exact results of the same numbers.
struct Exact {
  Call<double> call;
  PartData<double> parts;

  Exact(std::size_t norm, const Sizes& sizes) : call(sizes, 3) {
    Attention<double> attention{.mask = mask::Causal(), .dropout = {.probability = 0.1}};
    norm_table<double>()[norm].set(attention, parts);
    call.run(attention, Method::kReference);
  }
};

TEST(Norm, ErrorIsAtMostTwiceThatOfPlainLoops) {
  const Sizes sizes{.B = 2, .T = 190, .S = 210, .H = 2, .G = 1, .D = 40, .Dv = 24};
  for (std::size_t norm = 0; norm < norm_table<float>().size(); ++norm) {
    const NormRow<float>& row = norm_table<float>()[norm];
    const Exact exact(norm, sizes);
    const FloatResults plain = run_float(row, sizes, Method::kReference, 1);
    for_each_isa([&] {
      SCOPED_TRACE(row.name);
      const FloatResults fast = run_float(row, sizes, Method::kFused, 1);
      const auto expect = [&](const char* name, const auto& f, const auto& p, const auto& e) {
        EXPECT_TRUE(
            no_worse_than_plain(name, doubles(f), largest_difference(doubles(p), doubles(e)), e));
      };
      expect("o", fast.call.o, plain.call.o, exact.call.o);
      expect("lse", fast.call.lse, plain.call.lse, exact.call.lse);
      expect("dq", fast.call.dq, plain.call.dq, exact.call.dq);
      expect("dk", fast.call.dk, plain.call.dk, exact.call.dk);
      expect("dv", fast.call.dv, plain.call.dv, exact.call.dv);
      expect("dsink", fast.parts.dsink, plain.parts.dsink, exact.parts.dsink);
    });
  }
}

TEST(Norm, SameBitsForAnyNumberOfThreads) {
  const Sizes sizes{.B = 3, .T = 300, .S = 600, .H = 2, .G = 2, .D = 8, .Dv = 8};
  for (const NormRow<float>& row : norm_table<float>()) {
    SCOPED_TRACE(row.name);
    const FloatResults one = run_float(row, sizes, Method::kFused, 1);
    for (const int threads : {2, 3, 8}) {
      const FloatResults many = run_float(row, sizes, Method::kFused, threads);
      EXPECT_TRUE(same_results(one.call, many.call));
      EXPECT_EQ(one.parts.dsink, many.parts.dsink);
    }
  }
}

// Queries that see nothing, and poison behind the mask.
TEST(Norm, EmptyRowsAndPoison) {
  for (const NormRow<double>& row : norm_table<double>()) {
    for (const Method method : {Method::kReference, Method::kFused}) {
      SCOPED_TRACE(row.name);
      PartData<double> parts;
      Call<double> call({.T = 70, .S = 40, .H = 2, .G = 1, .D = 4, .Dv = 4}, 2);
      std::fill_n(call.k_row(0, 39, 0), 4, std::numeric_limits<double>::quiet_NaN());
      std::fill_n(call.v_row(0, 39, 0), 4, kInfinity);
      std::fill_n(call.d_o_row(0, 29, 0), 8, std::numeric_limits<double>::quiet_NaN());
      // Position i - 30: the first thirty queries have no key, and none has the last.
      Attention<double> attention{.mask = mask::Causal() & mask::Window(kOpen, 0) &
                                          mask::Where([](const ScoreSite& s) { return s.j < 39; })};
      row.set(attention, parts);
      call.run(attention, method);
      for (const auto* values : {&call.o, &call.dq, &call.dk, &call.dv}) {
        for (const double x : *values) ASSERT_TRUE(std::isfinite(x));
      }
      for (const double x : parts.dsink) EXPECT_TRUE(std::isfinite(x));
      for (index h = 0; h < 2; ++h) {
        EXPECT_EQ(call.o_row(0, 29, h)[0], 0);
        const bool softmax = std::holds_alternative<norm::Softmax>(attention.norm);
        const bool sink = !attention.sink.logits.empty();
        if (!softmax) continue;
        EXPECT_EQ(call.lse_at(0, h, 29),
                  sink ? parts.sink[static_cast<std::size_t>(h)] : -kInfinity);
      }
    }
  }
}

TEST(Norm, ASinkOfMinusInfinityIsNone) {
  for (const Method method : {Method::kReference, Method::kFused}) {
    // The first thirty queries have no key.
    Call<double> call({.T = 70, .S = 40, .H = 2, .G = 2, .D = 4, .Dv = 4}, 2), plain = call;
    const std::vector<double> logits = {-kInfinity, 0.5};
    std::vector<double> gradient(2, 77);
    call.run({.mask = mask::Causal(), .sink = {{logits.data(), 2}, {gradient.data(), 2}}}, method);
    plain.run({.mask = mask::Causal()}, method);
    EXPECT_EQ(gradient[0], 0);
    EXPECT_TRUE(std::isfinite(gradient[1]) && gradient[1] != 0);
    for (index i = 0; i < 70; ++i) {
      EXPECT_EQ(call.o_row(0, i, 0)[0], plain.o_row(0, i, 0)[0]);
      EXPECT_EQ(call.lse_at(0, 0, i), plain.lse_at(0, 0, i));
    }
  }
}

// Entropy and maximum of one row.
template <class V>
struct SeenNumbers {
  V entropy = 77, maximum = 77;

  SeenNumbers(V sink, V bias, Method method) {
    Call<V> call({.S = 100, .D = 4, .Dv = 2}, 2);
    const std::vector<V> values(100, bias);
    Attention<V> attention{
        .bias = bias::Dense<V>(ScoreView<const V>::contiguous(values.data(), 1, 1, 1, 100)),
        .sink = {{&sink, 1}}};
    attention.observe = observe::Entropy<V>(RowView<V>::contiguous(&entropy, 1, 1, 1)) +
                        observe::Maximum<V>(RowView<V>::contiguous(&maximum, 1, 1, 1));
    call.forward(attention, method);
  }
};

// So far that exp(sink - the largest score) is no number: of double from 710 on, of float from 89.
TEST(Norm, ASinkMayLieFarAboveTheScores) {
  const float lowest = std::numeric_limits<float>::lowest();
  for_each_isa([&] {
    for (const double sink : {3.0, 300.0, 664.0}) {
      const SeenNumbers<double> fused(sink, -50.0, Method::kFused);
      const SeenNumbers<double> exact(sink, -50.0, Method::kReference);
      EXPECT_NEAR(fused.entropy / exact.entropy, 1, 1e-12) << sink;
    }
    EXPECT_GT(SeenNumbers<float>(3, 0, Method::kFused).entropy, 1e-30);
    EXPECT_LT(SeenNumbers<float>(100, 0, Method::kFused).entropy, 1e-30);
    for (const Method method : {Method::kReference, Method::kFused}) {
      EXPECT_EQ(SeenNumbers<float>(100, -1e4f, method).entropy, 0);
      EXPECT_EQ(SeenNumbers<double>(1e4, 0, method).entropy, 0);
      EXPECT_EQ(SeenNumbers<float>(1e38f, lowest, method).entropy, 0);
      EXPECT_EQ(SeenNumbers<float>(0, lowest, method).maximum, lowest);
      EXPECT_EQ(SeenNumbers<float>(0, -std::numeric_limits<float>::infinity(), method).maximum,
                -std::numeric_limits<float>::infinity());
    }
  });
}

TEST(Norm, PairsThatMakeNoSenseAreRefused) {
  Call<float> call({.T = 3, .S = 3, .D = 2, .Dv = 2});
  std::vector<float> sink = {1}, number(3);
  const auto forward = [&](const Attention<float>& attention, const AttentionOutputs<float>& out) {
    attention_forward(Context(1), attention, call.in(), out);
  };
  const auto rows = RowView<float>::contiguous(number.data(), 1, 1, 3);
  AttentionOutputs<float> o_alone{.o = call.out().o};
  EXPECT_THROWS(forward({.norm = norm::Sigmoid(), .sink = {{sink.data(), 1}}}, o_alone),
                kOptionValue, "a sink needs softmax; the norm is sigmoid");
  EXPECT_THROWS(forward({.norm = norm::None(), .observe = observe::Entropy<float>(rows)}, o_alone),
                kOptionValue, "entropy needs softmax; the norm is none");
  EXPECT_THROWS(forward({.norm = norm::None()}, call.out()), kShape, "none has no log-sum-exp");
  EXPECT_THROWS(attention_backward(Context(1), {.norm = norm::Sigmoid()}, call.in(), call.saved(),
                                   call.gradients()),
                kShape, "sigmoid has no log-sum-exp");
  EXPECT_THROWS(forward({.sink = {{number.data(), 3}}}, o_alone), kShape,
                "the sink must be [H=1] or empty; it is [3]");
  EXPECT_THROWS(forward({.sink = {{sink.data(), 1}, {number.data(), 2}}}, o_alone), kShape,
                "the gradient of the sink must be [1]");
  EXPECT_THROWS(forward({.sink = {{nullptr, 1}}}, o_alone), kShape, "a size but no data");
  EXPECT_THROWS(forward({.sink = {{sink.data(), 1}, {nullptr, 1}}}, o_alone), kShape,
                "the gradient of the sink has a size but no data");
  sink[0] = std::numeric_limits<float>::quiet_NaN();
  EXPECT_THROWS(forward({.sink = {{sink.data(), 1}}}, o_alone), kOptionValue, "head 0");
}

}  // namespace
}  // namespace fovea::testing
