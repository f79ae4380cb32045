// SPDX-License-Identifier: Apache-2.0
#include "fovea/attention/reference.h"

#include <gmock/gmock.h>

#include <cmath>
#include <limits>
#include <numbers>

#include "tests/attention/support/golden.h"
#include "tests/attention/support/gradients.h"
#include "tests/attention/support/table.h"

namespace fovea::testing {
namespace {

using ::testing::DoubleNear;
using ::testing::ElementsAre;
using ::testing::Matcher;

TEST(ReferenceAttention, MatchesGoldenValues) {
  golden::expect_forward<double>(Method::kReference);
  golden::expect_forward<float>(Method::kReference);
}

TEST(ReferenceAttention, MatchesGoldenGradients) {
  golden::expect_backward<double>(Method::kReference);
  golden::expect_backward<float>(Method::kReference);
}

// The derivative of softmax, by central differences of the forward, for every input at once:
// masked, grouped, dropped out, with a bias.
TEST(ReferenceAttention, GradientsAreThoseOfTheForward) {
  Call<double> call({.B = 2, .T = 4, .S = 5, .H = 2, .G = 1, .D = 3, .Dv = 2}, 5);
  const std::vector<double> slopes = {0.3, -0.2};
  const Attention<double> attention{.bias = bias::Alibi<double>({slopes.data(), 2}),
                                    .mask = mask::Causal(),
                                    .dropout = {.probability = 0.25, .seed = 9}};
  expect_gradients(call, attention, {}, Method::kReference, 1e-9);
}

// A row of exactly one key copies it; a row of none is empty (spec section 3).
TEST(ReferenceAttention, OneKeyIsCopiedAndNoKeyGivesNothing) {
  Call<double> call({.T = 2, .S = 1, .D = 3, .Dv = 3}, 1);
  call.forward({.mask = mask::Causal(Align::kTopLeft) & mask::Window(0, 0)}, Method::kReference);
  EXPECT_EQ(std::vector<double>(call.o.begin(), call.o.begin() + 3), call.v);
  EXPECT_EQ(std::vector<double>(call.o.begin() + 3, call.o.end()), std::vector<double>(3, 0.0));
  EXPECT_EQ(call.lse[1], -std::numeric_limits<double>::infinity());
}

// A bias of -infinity masks: its score has weight 0 and passes no gradient on, whatever the norm.
TEST(ReferenceAttention, ABiasOfMinusInfinityIsAMask) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  const Sizes sizes{.T = 2, .S = 4, .D = 2, .Dv = 2};
  const bool dropped[] = {false, true, false, true};
  const std::vector<double> bias = {0.5, -kInfinity, 0.25, -kInfinity}, zero = {0.5, 0, 0.25, 0};
  const auto with = [](const std::vector<double>& values, std::vector<double>& gradient) {
    return bias::Dense<double>(ScoreView<const double>::contiguous(values.data(), 1, 1, 1, 4),
                               ScoreView<double>::contiguous(gradient.data(), 1, 1, 1, 4));
  };
  for (const Norm& norm : {Norm(norm::None()), Norm(norm::Sigmoid()), Norm(norm::Softmax())}) {
    Call<double> by_bias(sizes, 1), by_mask(sizes, 1);
    std::vector<double> dbias(4), dzero(4);
    by_bias.run({.bias = with(bias, dbias), .norm = norm}, Method::kReference);
    by_mask.run({.bias = with(zero, dzero),
                 .mask = mask::Drop(ScoreView<const bool>::contiguous(dropped, 1, 1, 1, 4)),
                 .norm = norm},
                Method::kReference);
    EXPECT_TRUE(same_results(by_bias, by_mask)) << name_of(norm);
    EXPECT_EQ(dbias, dzero) << name_of(norm);
    EXPECT_EQ(dbias[1], 0) << name_of(norm);
  }
}

// A call whose weights are its scores, each of gradient 1.
class ScoreCall : public Call<double> {
 public:
  ScoreCall(const Sizes& sizes, std::vector<double> queries, std::vector<double> keys)
      : Call<double>(sizes) {
    q = std::move(queries);
    k = std::move(keys);
    std::fill(v.begin(), v.end(), 1);
    std::fill(d_o.begin(), d_o.end(), 1);
    want_weights();
  }
  void run(Attention<double> attention) {
    attention.norm = norm::None();
    Call<double>::run(attention, Method::kReference);
  }
};

Matcher<double> near(double x) { return DoubleNear(x, 1e-15); }

TEST(ReferenceAttention, CosineByHand) {
  ScoreCall call({.S = 4, .D = 2}, {3, 4}, {1, 0, 0, 2, 0, 0, -3, -4});
  call.run({.score = score::Cosine{5}});
  EXPECT_THAT(call.weights, ElementsAre(near(3), near(4), 0, near(-5)));
  // Of (3, 4) and (1, 0): 5 ((1, 0) - 0.6 (0.6, 0.8)) / 5, and 5 ((0.6, 0.8) - 0.6 (1, 0)).
  ScoreCall one({.S = 1, .D = 2}, {3, 4}, {1, 0});
  one.run({.score = score::Cosine{5}});
  EXPECT_THAT(one.dq, ElementsAre(near(0.64), near(-0.48)));
  EXPECT_THAT(one.dk, ElementsAre(near(0), near(4)));
}

TEST(ReferenceAttention, ConcatByHand) {
  const std::vector<double> w = {1, 2, 3, 4, -1, 0, 0, 1};
  std::vector<double> dw(8, 77);
  // Two heads on one key: 2 (1 3 + 2 4 + 3 5 + 4 6) and 2 (-7 + 6).
  ScoreCall call({.S = 1, .H = 2, .D = 2}, {3, 4, 7, 8}, {5, 6});
  call.run({.score = score::Concat<double>{{w.data(), 2, 4}, {dw.data(), 2, 4}, 2}});
  EXPECT_THAT(call.weights, ElementsAre(100, -2));
  EXPECT_THAT(call.dq, ElementsAre(2, 4, -2, 0));
  EXPECT_THAT(call.dk, ElementsAre(6 + 0, 8 + 2));
  EXPECT_THAT(dw, ElementsAre(6, 8, 10, 12, 14, 16, 10, 12));
}

TEST(ReferenceAttention, L2ByHand) {
  ScoreCall call({.S = 2, .D = 2}, {3, 4}, {1, 1, 3, 5});
  call.run({.score = score::L2{0.5}});
  EXPECT_THAT(call.weights, ElementsAre(-6.5, -0.5));
  EXPECT_THAT(call.dq, ElementsAre(-2 + 0, -3 + 1));
  EXPECT_THAT(call.dk, ElementsAre(2, 3, 0, -1));
}

// tanh(log 2) = (2 - 1/2) / (2 + 1/2) = 0.6.
TEST(ReferenceAttention, AdditiveByHand) {
  const std::vector<double> v = {2, -1};
  std::vector<double> dv(2, 77);
  ScoreCall call({.S = 1, .D = 2}, {1, 0.5}, {-1, std::numbers::ln2 - 0.5});
  call.run({.score = score::Additive<double>{{v.data(), 1, 2}, {dv.data(), 1, 2}, 3}});
  EXPECT_THAT(call.weights, ElementsAre(near(-1.8)));
  EXPECT_THAT(call.dq, ElementsAre(near(6), near(-1.92)));
  EXPECT_THAT(call.dk, ElementsAre(near(6), near(-1.92)));
  EXPECT_THAT(dv, ElementsAre(near(0), near(1.8)));
}

// With base (2 / pi)^2 the second pair of four columns turns by p / base^(1/2): a quarter turn for
// each position. The queries are rows 0 and 1 of three, two of which count, as do three of the four
// keys: their positions are 1 and 2.
TEST(ReferenceAttention, RotaryByHand) {
  constexpr double kBase = 4 / (std::numbers::pi * std::numbers::pi);
  const std::vector<std::int32_t> queries = {2}, keys = {3};
  const Mask mask = mask::QueryLengths(view_of(queries)) & mask::KeyLengths(view_of(keys));
  // (5, 7) turned once is (-7, 5), twice (-5, -7). (1, 2) turned by 0, 1, 2: (1, 2), (-2, 1), (-1,
  // -2).
  ScoreCall call({.T = 3, .S = 4, .D = 4}, {0, 0, 5, 7, 0, 0, 5, 7, 9, 9, 9, 9},
                 {0, 0, 1, 2, 0, 0, 1, 2, 0, 0, 1, 2, 9, 9, 9, 9});
  call.run({.score = score::Dot{1}, .mask = mask, .rotary = {RotaryPairs::kInterleaved, kBase}});
  const auto is = [](double x) { return DoubleNear(x, 1e-14); };
  EXPECT_THAT(call.weights, ElementsAre(is(3), is(19), is(-3), 0,  //
                                        is(-19), is(3), is(19), 0, 0, 0, 0, 0));
  // The turned keys sum to (-2, 1); turned back once (1, 2), twice (2, -1). The turned queries sum
  // to (-12, -2); turned back by 0, 1, 2.
  EXPECT_THAT(call.dq, ElementsAre(0, 0, is(1), is(2), 0, 0, is(2), is(-1), 0, 0, 0, 0));
  EXPECT_THAT(call.dk, ElementsAre(0, 0, is(-12), is(-2), 0, 0, is(-2), is(12), 0, 0, is(12), is(2),
                                   0, 0, 0, 0));
  ScoreCall halves({.T = 3, .S = 4, .D = 4}, {0, 5, 0, 7, 0, 5, 0, 7, 9, 9, 9, 9},
                   {0, 1, 0, 2, 0, 1, 0, 2, 0, 1, 0, 2, 9, 9, 9, 9});
  halves.run({.score = score::Dot{1}, .mask = mask, .rotary = {RotaryPairs::kHalves, kBase}});
  EXPECT_EQ(halves.weights, call.weights);
}

// (3, 4) at positions p and j: the angle between them is p - j, and the cosine's gradient is across
// the row. The only query of the second sequence stands at 2, the last of three keys.
TEST(ReferenceAttention, RotaryCosineByHand) {
  const std::vector<std::int32_t> queries = {0, 1, 2}, keys = {0, 1, 4};
  ScoreCall call({.T = 2, .S = 4, .D = 2}, {1, 0, 3, 4}, {2, 0, 3, 4, 3, 4, 3, 4});
  call.run({.score = score::Cosine(),
            .packed = {view_of(queries), view_of(keys)},
            .rotary = {RotaryPairs::kHalves}});
  EXPECT_THAT(call.weights, ElementsAre(near(1), 0, 0, 0,  //
                                        0, near(std::cos(2)), near(std::cos(1)), near(1)));
  // The gradient of the angle of (3, 4) is (-4, 3) / 25: it lowers the cosine by the sine.
  const double two = std::sin(2) / 25, one = std::sin(1) / 25;
  EXPECT_THAT(call.dq,
              ElementsAre(near(0), near(0), near(4 * (two + one)), near(-3 * (two + one))));
  EXPECT_THAT(call.dk, ElementsAre(near(0), near(0), near(-4 * two), near(3 * two),  //
                                   near(-4 * one), near(3 * one), near(0), near(0)));
}

// Every score with every kind of rotary positions, and a bias that reads what it sees of the rows:
// by central differences, for rows of padding too, whose gradients are 0.
TEST(ReferenceAttention, GradientsOfEveryScoreAreThoseOfTheForward) {
  const std::vector<std::int32_t> queries = {3, 4}, keys = {5, 3};
  for (const auto& row : score_table<double>()) {
    for (const RotaryPairs pairs :
         {RotaryPairs::kNone, RotaryPairs::kHalves, RotaryPairs::kInterleaved}) {
      SCOPED_TRACE(::testing::Message() << row.name << ", rotary " << static_cast<int>(pairs));
      Call<double> call({.B = 2, .T = 4, .S = 5, .H = 2, .G = 1, .D = 4, .Dv = 2}, 5);
      Attention<double> attention{.mask = mask::QueryLengths(view_of(queries)) &
                                          mask::KeyLengths(view_of(keys)) & mask::Causal()};
      PartData<double> parts;
      row.set(attention, parts, 4);
      attention.rotary = {pairs, 100};
      if (std::holds_alternative<score::Concat<double>>(attention.score)) {
        parts.width = 5;
        parts.biases = parts.drawn();
      }
      attention.bias = parts.shaw_keys(ShawOrder::kQueryMinusKey) + bias::Softcap<double>(8);
      PartTensor<double>& shaw = parts.of("shaw_k");
      std::vector<CheckedGradient> more = {{"shaw", shaw.x, shaw.dx}};
      if (!parts.w.empty()) more.push_back({"w", parts.w, parts.dw});
      expect_gradients(call, attention, more, Method::kReference, 1e-8);
    }
  }
}

// An output that is left empty is not written, and takes nothing from the rest.
TEST(ReferenceAttention, GradientsThatAreNotWantedAreLeftOut) {
  for (const auto& row : score_table<double>()) {
    SCOPED_TRACE(row.name);
    const Sizes sizes{.B = 1, .T = 3, .S = 5, .H = 2, .G = 1, .D = 4, .Dv = 2};
    Call<double> all(sizes, 5), none(sizes, 5);
    PartData<double> parts, weights_only, without;
    Attention<double> attention;
    row.set(attention, parts, 4);
    all.run(attention, Method::kReference);
    row.set(attention, weights_only, 4);
    attention_reference_backward(attention, all.in(), all.saved(), {});
    EXPECT_EQ(weights_only.dw, parts.dw);
    row.set(attention, without, 4);
    if (auto* concat = std::get_if<score::Concat<double>>(&attention.score)) concat->dw = {};
    if (auto* additive = std::get_if<score::Additive<double>>(&attention.score)) additive->dv = {};
    none.run(attention, Method::kReference);
    EXPECT_TRUE(same_results(all, none));
    EXPECT_EQ(without.dw, std::vector<double>(without.w.size()));
  }
}

}  // namespace
}  // namespace fovea::testing
