// SPDX-License-Identifier: Apache-2.0
#include "fovea/nn/attention_rnn.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/nn/support.h"
#include "tests/support/throws.h"

namespace fovea {
namespace {

constexpr index N = 7, C = 4;
const std::int32_t kOffsets[] = {0, 3, N};
using Doubles = std::vector<double>;
using Matrix = std::vector<Doubles>;

const double* values(const ParameterSet& set, const std::string& name) {
  return set.find(name)->value.vec<double>().data;
}

// W x + b, with W [out, in].
Doubles affine(const double* W, const double* b, const Doubles& x, index out) {
  Doubles y(static_cast<std::size_t>(out));
  const auto in = static_cast<index>(x.size());
  for (index o = 0; o < out; ++o) {
    y[static_cast<std::size_t>(o)] = b[o];
    for (index i = 0; i < in; ++i) {
      y[static_cast<std::size_t>(o)] += W[o * in + i] * x[static_cast<std::size_t>(i)];
    }
  }
  return y;
}

// The states of one sequence.
Matrix states(const ParameterSet& set, const Matrix& x) {
  Matrix h;
  Doubles state(C, 0.0);
  const Doubles zeros(C, 0.0);
  for (const Doubles& row : x) {
    Doubles sum = affine(values(set, "weight_ih_l0"), values(set, "bias_l0"), row, C);
    const Doubles back = affine(values(set, "weight_hh_l0"), zeros.data(), state, C);
    for (std::size_t c = 0; c < C; ++c) state[c] = std::tanh(sum[c] + back[c]);
    h.push_back(state);
  }
  return h;
}

struct Attended {
  Matrix q, k, v;
};

Attended project(const ParameterSet& set, const AttentionRnnOptions& o, const Matrix& h) {
  if (o.heads == 1) return {h, h, h};
  Attended a;
  for (const Doubles& row : h) {
    const Doubles qkv = affine(values(set, "qkv.weight"), values(set, "qkv.bias"), row, 3 * C);
    a.q.emplace_back(qkv.begin(), qkv.begin() + C);
    a.k.emplace_back(qkv.begin() + C, qkv.begin() + 2 * C);
    a.v.emplace_back(qkv.begin() + 2 * C, qkv.end());
  }
  return a;
}

// The result of the query at t, before the last projection.
Doubles attend(const AttentionRnnOptions& o, const Attended& a, index t) {
  const index D = C / o.heads;
  const index last = t - (o.defects.history_only ? 1 : 0);
  const index first = o.window > 0 ? std::max<index>(0, last - o.window + 1) : 0;
  Doubles out(C, 0.0);
  for (index head = 0; head < o.heads; ++head) {
    Doubles weights;
    double sum = 0;
    for (index s = first; s <= last; ++s) {
      double score = 0;
      for (index d = head * D; d < (head + 1) * D; ++d) {
        const auto c = static_cast<std::size_t>(d);
        score += a.q[static_cast<std::size_t>(t)][c] * a.k[static_cast<std::size_t>(s)][c];
      }
      const double e = std::exp(score / std::sqrt(static_cast<double>(D)));
      weights.push_back(o.defects.sum_weights ? 1 : e);
      sum += o.defects.sum_weights ? 0 : e;
    }
    if (o.defects.sum_weights) sum = 1;
    for (index s = first; s <= last; ++s) {
      for (index d = head * D; d < (head + 1) * D; ++d) {
        const auto c = static_cast<std::size_t>(d);
        out[c] += weights[static_cast<std::size_t>(s - first)] / sum *
                  a.v[static_cast<std::size_t>(s)][c];
      }
    }
  }
  return out;
}

// All sequences, by plain loops.
Doubles by_hand(const ParameterSet& set, const AttentionRnnOptions& o, const Doubles& x) {
  Doubles all;
  for (int s = 0; s < 2; ++s) {
    Matrix rows;
    for (index n = kOffsets[s]; n < kOffsets[s + 1]; ++n) {
      rows.emplace_back(x.begin() + n * C, x.begin() + (n + 1) * C);
    }
    const Matrix h = states(set, rows);
    const Attended a = project(set, o, h);
    for (index t = 0; t < static_cast<index>(h.size()); ++t) {
      Doubles y = attend(o, a, t);
      if (o.heads > 1) y = affine(values(set, "out.weight"), values(set, "out.bias"), y, C);
      if (o.defects.history_only && t == 0) y = h[0];
      all.insert(all.end(), y.begin(), y.end());
    }
  }
  return all;
}

std::vector<AttentionRnnOptions> forms() {
  std::vector<AttentionRnnOptions> all;
  for (const index heads : {1, 2}) {
    for (const index window : {0, 1, 2}) {
      for (const bool sum : {false, true}) {
        for (const bool past : {false, true}) {
          all.push_back({.in = C,
                         .hidden = C,
                         .heads = heads,
                         .window = window,
                         .defects = {.sum_weights = sum, .history_only = past}});
        }
      }
    }
  }
  return all;
}

template <class T>
Variable forward(Tape& tape, const AttentionRnn& layer, const std::vector<T>& x) {
  return layer.forward(tape, tape.constant(Rows<const T>(x.data(), N, C)),
                       lay_out_rows(tape, N, {kOffsets, 3}, {}), nullptr);
}

TEST(AttentionRnn, IsItsFormula) {
  const auto x = noise<double>(N * C);
  for (const AttentionRnnOptions& o : forms()) {
    SCOPED_TRACE(fmt::format("{} heads, window {}, sum {}, past {}", o.heads, o.window,
                             o.defects.sum_weights, o.defects.history_only));
    auto set = float64_set();
    const AttentionRnn layer(o, ParameterScope(set));
    randomise(set);
    const auto y = output_of<double>([&](Tape& t) { return forward(t, layer, x); });
    EXPECT_THAT(y, testing::Pointwise(testing::DoubleNear(1e-13), by_hand(set, o, x)));
  }
}

TEST(AttentionRnn, GradientIsThatOfTheForward) {
  const auto x = noise<double>(N * C);
  for (AttentionRnnOptions o : forms()) {
    if (o.defects.sum_weights && o.heads > 1) continue;  // q and k have no gradient: below
    auto set = float64_set();
    const AttentionRnn layer(o, ParameterScope(set));
    expect_gradients(set, [&](Tape& t) { return forward(t, layer, x); });
  }
}

// Spec A21: a window as long as the text is no window.
TEST(AttentionRnn, AWindowOfTheWholeTextChangesNothing) {
  const auto x = noise(N * C);
  const auto run = [&](index window) {
    ParameterSet set({});
    const AttentionRnn layer({.in = C, .hidden = C, .heads = 2, .window = window},
                             ParameterScope(set));
    randomise(set);
    return output_of([&](Tape& t) { return forward(t, layer, x); });
  };
  EXPECT_EQ(run(N), run(0));
  EXPECT_NE(run(2), run(0));
}

// Spec D13, D14: in the published code the output does not depend on its own token, and the
// projections of queries and keys learn nothing.
TEST(AttentionRnn, TheDefectsAreThoseOfThePublishedCode) {
  const AttentionRnnOptions options{
      .in = C, .hidden = C, .heads = 2, .defects = {.sum_weights = true, .history_only = true}};
  ParameterSet set({});
  const AttentionRnn layer(options, ParameterScope(set));
  randomise(set);
  auto x = noise(N * C);
  const auto run = [&] { return output_of([&](Tape& t) { return forward(t, layer, x); }); };
  const auto before = run();
  for (index c = 0; c < C; ++c) x[static_cast<std::size_t>(4 * C + c)] += 1;  // row 1 of sequence 1
  const auto after = run();
  const auto row = [](const std::vector<float>& y, index n) {
    return std::vector<float>(y.begin() + n * C, y.begin() + (n + 1) * C);
  };
  EXPECT_EQ(row(after, 4), row(before, 4));
  EXPECT_NE(row(after, 5), row(before, 5));

  Tape tape(Context(1));
  const Variable y = forward(tape, layer, x);
  tape.backward(sum(tape, multiply(tape, y, y)));
  const auto gradient = to_vector(set.find("qkv.weight")->finished_gradient().vec<float>());
  for (index n = 0; n < 2 * C * C; ++n) ASSERT_EQ(gradient[static_cast<std::size_t>(n)], 0) << n;
  EXPECT_NE(gradient[2 * C * C], 0);
}

// Spec D15: the next call starts from the attention, so that a text in two calls is another text.
TEST(AttentionRnn, StateIsAttentionBreaksATextInTwo) {
  const auto x = noise(N * C);
  const auto in_two = [&](bool defect) {
    ParameterSet set({});
    const AttentionRnn layer({.in = C, .hidden = C, .defects = {.state_is_attention = defect}},
                             ParameterScope(set));
    randomise(set);
    const auto session = layer.begin(100);
    std::vector<float> y;
    for (const auto& [first, n] : {std::pair{0, 4}, {4, 3}}) {
      const auto piece = output_of([&, first = first, n = n](Tape& t) {
        return session->forward(t, t.constant(Rows<const float>(x.data() + first * C, n, C)));
      });
      y.insert(y.end(), piece.begin(), piece.end());
    }
    return std::pair{y, output_of([&](Tape& t) {
                       return layer.forward(t, t.constant(Rows<const float>(x.data(), N, C)), {},
                                            nullptr);
                     })};
  };
  const auto right = in_two(false), wrong = in_two(true);
  EXPECT_EQ(right.first, right.second);
  EXPECT_NE(wrong.first, wrong.second);
}

TEST(AttentionRnn, ItsHeadsCanBeSeen) {
  ParameterSet set({});
  const AttentionRnn layer({.in = C, .hidden = C, .heads = 2}, ParameterScope(set));
  const auto x = noise(N * C);
  HeadStatistics seen;
  Tape tape(Context(1), TapeMode::kInference);
  layer.forward(tape, tape.constant(Rows<const float>(x.data(), N, C)), {}, &seen);
  EXPECT_EQ(seen.queries, N);
  EXPECT_EQ(seen.entropy.size(), 2);
}

TEST(AttentionRnn, RefusesHeadsThatDoNotFit) {
  ParameterSet set({});
  EXPECT_THROWS(AttentionRnn({.in = C, .hidden = 5, .heads = 2}, ParameterScope(set)), kShape,
                "width 5 is not divisible by 2 heads");
}

}  // namespace
}  // namespace fovea
