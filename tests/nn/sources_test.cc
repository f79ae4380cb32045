// SPDX-License-Identifier: Apache-2.0
// Where the layers of the sources compute something else than they say: the right result, and the
// wrong one under the switch that repeats it (docs/articles).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <span>
#include <type_traits>

#include "fovea/attention/mask/band.h"
#include "fovea/base/profile.h"
#include "fovea/nn/attention_rnn.h"
#include "fovea/nn/norm.h"
#include "tests/isa.h"
#include "tests/nn/attention_support.h"

namespace fovea {
namespace {

// D7: sizes belong to a layer; values may be wider than keys, and heads need not fill the width.
// (In the source they are global, and d_v is d_k.)
TEST(Sources, D7EveryLayerHasItsOwnSizes) {
  ParameterSet set({});
  Options a = options(2, 5), b = options(3);
  a.value_dim = 4;
  a.output = OutputProjection::kNone;
  const MultiHeadAttention first(a, ParameterScope(set)["a"]), second(b, ParameterScope(set)["b"]);
  const auto x = noise(N * C);
  EXPECT_EQ(output_of([&](Tape& t) { return self(t, first, x); }).size(), N * 2 * 4u);
  EXPECT_EQ(output_of([&](Tape& t) { return self(t, second, x); }).size(), N * 3 * 2u);
  EXPECT_EQ(set.find("a.qkv.weight")->value.shape(), Shape({2 * 5 + 2 * 5 + 2 * 4, C}));
}

// D8: one convention. Tokens are rows, and weights are [out, in]: q of token n is W x_n. One token
// attends to itself alone, so what comes out is Wo (Wv x + bv) + bo. (The source has columns in its
// text, rows in its code.)
TEST(Sources, D8TokensAreRowsAndWeightsAreOutByIn) {
  auto set = float64_set();
  Options o = options(1, 4);
  o.value_dim = 3;
  const MultiHeadAttention layer(o, ParameterScope(set));
  randomise(set);
  const auto x = noise<double>(C);
  const auto y = output_of<double>([&](Tape& t) {
    return layer.forward(t, t.constant(Rows<const double>(x.data(), 1, C)), {});
  });
  const auto qkv = set.find("qkv.weight")->value.rows<double>();
  const auto out = set.find("out.weight")->value.rows<double>();
  const auto bias = set.find("qkv.bias")->value.vec<double>();
  ASSERT_EQ(qkv.columns, C);
  ASSERT_EQ(out.rows, C);
  for (index c = 0; c < C; ++c) {
    double expected = set.find("out.bias")->value.vec<double>()[c];
    for (index d = 0; d < 3; ++d) {
      double v = bias[2 * 4 + d];
      for (index i = 0; i < C; ++i) v += qkv[2 * 4 + d][i] * x[static_cast<std::size_t>(i)];
      expected += out[c][d] * v;
    }
    EXPECT_NEAR(y[static_cast<std::size_t>(c)], expected, 1e-14);
  }
}

// D9: dropout is a number, which every layer can do with. (In the source it is called like a
// function, unless a layer is given.)
TEST(Sources, D9DropoutIsANumber) {
  static_assert(std::is_same_v<decltype(Options::dropout), double>);
  ParameterSet set({});
  Options o = options(2);
  o.dropout = 0.1;
  const MultiHeadAttention layer(o, ParameterScope(set));
  const auto x = noise(N * C);
  Tape tape(Context(1));
  const Variable y =
      layer.forward(tape, tape.constant(Rows<const float>(x.data(), N, C)), whole(tape), {1, 2, 3});
  EXPECT_EQ(y.rows(), N);
}

// The scores of a fresh layer, of two heads as one.
std::vector<float> fresh_scores(const MultiHeadAttention& layer, const ParameterSet& set,
                                const std::vector<float>& x) {
  const index H = layer.options().heads * layer.options().head_dim;
  const auto rows = set.find("qkv.weight")->value.rows<float>();
  const auto dot = [&](index part, index n, index c) {
    float sum = 0;
    for (index i = 0; i < C; ++i)
      sum += rows[part * H + c][i] * x[static_cast<std::size_t>(n * C + i)];
    return sum;
  };
  std::vector<float> scores;
  for (index i = 0; i < N; ++i) {
    for (index j = 0; j < N; ++j) {
      float s = 0;
      for (index c = 0; c < H; ++c) s += dot(0, i, c) * dot(1, j, c);
      scores.push_back(s);
    }
  }
  return scores;
}

// D10: the four projections start with numbers of their own. (In the source they are copies of one
// layer, so scores start symmetric: s_ij = s_ji.)
TEST(Sources, D10ProjectionsStartDifferent) {
  ParameterSet set({});
  const MultiHeadAttention layer(options(2), ParameterScope(set));
  const auto qkv = set.find("qkv.weight")->value.rows<float>();
  const auto out = to_vector(set.find("out.weight")->value.rows<float>());
  std::vector<std::vector<float>> all{out};
  for (index part = 0; part < 3; ++part) {
    all.push_back(to_vector(qkv.slice(part * C, (part + 1) * C)));
  }
  for (std::size_t a = 0; a < 4; ++a) {
    for (std::size_t b = 0; b < a; ++b) EXPECT_NE(all[a], all[b]);
  }
  const auto x = noise(N * C);
  const auto asymmetry = [&] {
    const auto scores = fresh_scores(layer, set, x);
    float largest = 0, difference = 0;
    for (index i = 0; i < N; ++i) {
      for (index j = 0; j < i; ++j) {
        const float a = scores[static_cast<std::size_t>(i * N + j)],
                    b = scores[static_cast<std::size_t>(j * N + i)];
        largest = std::max(largest, std::abs(a));
        difference = std::max(difference, std::abs(a - b));
      }
    }
    return difference / largest;
  };
  EXPECT_GT(asymmetry(), 0.1f);
  for (index row = 0; row < C; ++row) std::copy_n(qkv[row], C, qkv[C + row]);  // as in the source
  EXPECT_LT(asymmetry(), 1e-5f);
}

// ---------------------------------------------------------------------------- the attention RNN

using Defects = AttentionRnnDefects;

// The result of a fresh layer for one sequence, from rows of one number.
std::vector<float> attention_rnn(const AttentionRnnOptions& options, const std::vector<float>& x) {
  ParameterSet set({});
  const AttentionRnn layer(options, ParameterScope(set));
  randomise(set);
  return output_of([&](Tape& t) {
    const auto n = static_cast<index>(x.size()) / C;
    return layer.forward(t, t.constant(Rows<const float>(x.data(), n, C)), {}, nullptr);
  });
}

float largest_of(const std::vector<float>& values) {
  float largest = 0;
  for (const float v : values) largest = std::max(largest, std::abs(v));
  return largest;
}

// D13: weights sum to 1 over the history, so the result stays among the states, which a tanh bounds
// by 1. With the published softmax over an axis of length one every weight is 1 (golden
// D_softmax_dim1_on_1xN): the sum of the history grows with its length.
TEST(Sources, D13WeightsSumToOne) {
  const std::vector<float> x(400 * C, 1.0f);
  EXPECT_LE(largest_of(attention_rnn({.in = C, .hidden = C}, x)), 1.0f);
  const AttentionRnnOptions wrong{.in = C, .hidden = C, .defects = {.sum_weights = true}};
  const float at_200 = largest_of(attention_rnn(wrong, std::vector<float>(200 * C, 1.0f)));
  const float at_400 = largest_of(attention_rnn(wrong, x));
  EXPECT_GT(at_200, 50.0f);
  EXPECT_NEAR(at_400 / at_200, 2, 0.1);
}

// D14: "this step and those before it": the result depends on its own token. Under the switch it
// does not.
TEST(Sources, D14TheHistoryHoldsTheStateItself) {
  const auto last_row_moves = [](const Defects& defects, index heads) {
    const AttentionRnnOptions o{.in = C, .hidden = C, .heads = heads, .defects = defects};
    auto x = noise(N * C);
    const auto before = attention_rnn(o, x);
    for (index c = 0; c < C; ++c) x[static_cast<std::size_t>((N - 1) * C + c)] *= -2;
    const auto after = attention_rnn(o, x);
    EXPECT_TRUE(std::equal(before.begin(), before.end() - C, after.begin()));
    return !std::equal(before.end() - C, before.end(), after.end() - C);
  };
  for (const index heads : {1, 2}) {
    EXPECT_TRUE(last_row_moves({}, heads));
    EXPECT_TRUE(last_row_moves({.sum_weights = true}, heads));
    EXPECT_FALSE(last_row_moves({.sum_weights = true, .history_only = true}, heads));
  }
}

// D15: a sequence of one token has a result: its state, whose only key is itself. (The published
// code returns a variable that it has not set.) AttentionRnn.StateIsAttentionBreaksATextInTwo shows
// the rest of D15.
TEST(Sources, D15OneTokenHasAResult) {
  const auto x = noise(C);
  ParameterSet set({});
  const RecurrentLayers plain({.kind = RecurrentKind::kRnn, .in = C, .hidden = C},
                              ParameterScope(set));
  randomise(set);
  const auto h = output_of([&](Tape& t) {
    return plain.forward(t, t.constant(Rows<const float>(x.data(), 1, C)), {}, {});
  });
  for (const bool past : {false, true}) {
    const AttentionRnnOptions o{.in = C, .hidden = C, .defects = {.history_only = past}};
    EXPECT_EQ(attention_rnn(o, x), h);
  }
}

// D16: one sequence keeps its axis, with one head and with several, and has the bits that it has
// among others. (The published code squeezes the axis of a batch of one, and fails.)
TEST(Sources, D16ABatchOfOneIsABatch) {
  const auto x = noise(3 * N * C);
  for (const index heads : {1, 3}) {
    ParameterSet set({});
    const AttentionRnn layer({.in = C, .hidden = C, .heads = heads}, ParameterScope(set));
    randomise(set);
    const auto run = [&](index first, index sequences) {
      return output_of([&](Tape& t) {
        std::vector<std::int32_t> offsets;
        for (index s = 0; s <= sequences; ++s) offsets.push_back(static_cast<std::int32_t>(s * N));
        const Rows<const float> rows(x.data() + first * N * C, sequences * N, C);
        return layer.forward(t, t.constant(rows), lay_out_rows(t, rows.rows, offsets, {}), nullptr);
      });
    };
    const auto all = run(0, 3), one = run(1, 1);
    ASSERT_EQ(one.size(), static_cast<std::size_t>(N * C));
    EXPECT_TRUE(std::equal(one.begin(), one.end(), all.begin() + N * C)) << heads;
  }
}

// Multiplications and additions of a piece of work.
struct Flops {
  double products = 0, attention = 0;
};

Flops flops_of(const std::function<void(const Context&)>& work) {
  Profile profile;
  work(Context(1).profiled(profile));
  Flops flops;
  for (const Profile::Part& part : profile.parts()) {
    (part.work.what == "attention" ? flops.attention : flops.products) += part.work.flops;
  }
  return flops;
}

// The result for the next row of a session, after n others.
std::vector<Flops> flops_of_steps(const AttentionRnn& layer, std::span<const int> numbers) {
  const auto x = noise(C);
  const auto session = layer.begin(2000);
  std::vector<Flops> all;
  for (int n = 0; n <= numbers.back(); ++n) {
    const Flops flops = flops_of([&](const Context& ctx) {
      Tape t(ctx, TapeMode::kInference);
      session->forward(t, t.constant(Rows<const float>(x.data(), 1, C)));
    });
    if (std::find(numbers.begin(), numbers.end(), n) != numbers.end()) all.push_back(flops);
  }
  return all;
}

// D17: keys and values are projected once, so products take n times as much for n tokens, and the
// thousandth token of a session takes as much as the first. (The published code projects the whole
// history again at each step: n^2.)
TEST(Sources, D17KeysAndValuesAreProjectedOnce) {
  ParameterSet set({});
  const AttentionRnn layer({.in = C, .hidden = C, .heads = 2}, ParameterScope(set));
  const auto x = noise(1024 * C);
  const auto of_rows = [&](index n) {
    return flops_of([&](const Context& ctx) {
             Tape t(ctx, TapeMode::kInference);
             layer.forward(t, t.constant(Rows<const float>(x.data(), n, C)), {}, nullptr);
           })
        .products;
  };
  EXPECT_GT(of_rows(1), 0);
  EXPECT_EQ(of_rows(1000), 1000 * of_rows(1));
  const auto steps = flops_of_steps(layer, std::array{0, 999});
  EXPECT_EQ(steps[0].products, steps[1].products);
}

// Spec A21: a step takes O(W) with a window of W states, and O(n) without.
TEST(Sources, A21AWindowBoundsTheCostOfAStep) {
  const auto of_steps = [](index window) {
    ParameterSet set({});
    const AttentionRnn layer({.in = C, .hidden = C, .window = window}, ParameterScope(set));
    return flops_of_steps(layer, std::array{99, 999});
  };
  const auto all = of_steps(0), some = of_steps(16);
  EXPECT_EQ(all[1].attention, 10 * all[0].attention);
  EXPECT_EQ(some[1].attention, some[0].attention);
  EXPECT_GT(some[0].attention, 0);
  EXPECT_LT(some[0].attention, 0.25 * all[0].attention);
}

// -----------------------------------------------------------------------------------------------
// D18

// D18: rows of equal values have finite gradients, in the usual norm and in that of the source
// (--compat=ln-unbiased), whose own has 0 / 0 there: the derivative of the root at 0.
TEST(Sources, D18ConstantRowsHaveFiniteGradients) {
  for (const auto variant : {LayerNormVariant::kStandard, LayerNormVariant::kUnbiased}) {
    ParameterSet set({});
    const NormLayer norm({.width = C, .variant = variant}, ParameterScope(set));
    randomise(set);
    const std::vector<float> x(N * C, 0.5f);
    Tape tape(Context(1));
    const Variable in = tape.input(Rows<const float>(x.data(), N, C));
    const Variable y = norm.forward(tape, in);
    tape.backward(sum(tape, multiply(tape, y, y)));
    for (const float g : to_vector(in.gradient<float>())) EXPECT_TRUE(std::isfinite(g));
    for (Parameter* p : set.parameters()) {
      for (const float g : p->finished_gradient().vec<float>()) EXPECT_TRUE(std::isfinite(g));
    }
  }
  const double root_at_0 = 0.5 / std::sqrt(0.0);
  EXPECT_TRUE(std::isnan(root_at_0 * 0.0)) << "what the source's graph multiplies";
}

// D23: an output projection is there or not, as asked; the linked code has none. The order of sines
// and cosines is said, too: SinusoidalPositions.OrdersArePermutationsOfEachOther.
TEST(Sources, D23TheOutputProjectionIsAsked) {
  for (const auto output : {OutputProjection::kNone, OutputProjection::kLearned}) {
    ParameterSet set({});
    Options o = options(2);
    o.output = output;
    const MultiHeadAttention layer(o, ParameterScope(set));
    EXPECT_EQ(set.find("out.weight") != nullptr, output == OutputProjection::kLearned);
  }
}

}  // namespace
}  // namespace fovea
