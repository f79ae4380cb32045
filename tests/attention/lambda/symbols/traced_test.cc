// SPDX-License-Identifier: Apache-2.0
// Lambdas that are written down and run by vectors, against the same lambda at dual numbers.
#include "fovea/attention/lambda/symbols/traced.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <stdexcept>
#include <string>
#include <vector>

#include "fovea/attention/attention.h"
#include "tests/attention/support/gradients.h"
#include "tests/isa.h"

namespace fovea::testing {
namespace {

using bias::Learned;
using bias::of;

// Tiles of many shapes: with gaps between the rows, without, wider than a strip.
struct Shape {
  index queries, keys, gap;
};
constexpr Shape kShapes[] = {{19, 37, 2}, {64, 128, 0}, {1, 1, 0}, {3, 700, 0}, {530, 5, 3}};

// Scores of both signs, none of them 0. A fifth of the gradients are 0, where scores are not
// numbers.
template <class V>
struct Tiles {
  TileSite site;
  std::vector<V> scores, dscores;
  index stride;
  TileLanes lanes;

  Tiles(const TileSite& at, index gap, TileLanes l) : site(at), lanes(l) {
    const bool queries = lanes == TileLanes::kQueries;
    stride = (queries ? at.queries : at.keys) + gap;
    const index size = stride * (queries ? at.keys : at.queries);
    scores = normals<V>(8, size);
    dscores = normals<V>(9, size);
    for (std::size_t n = 0; n < scores.size(); n += 5) {
      dscores[n] = 0;
      scores[n] = std::numeric_limits<V>::quiet_NaN();
    }
  }
  ScoreTile<V> of(std::vector<V>& values) const { return {values.data(), stride, lanes}; }
};

// The bounds are in units of the last place of `size`, or of what is compared, if that is larger.
template <class V>
void expect_definition(const BiasPart<V>& part, const Shape& shape, double ulps, double size) {
  const Sequence sequence{.queries = 3000, .keys = 3100};
  const TileSite site{sequence, 1, 40, shape.queries, 77, shape.keys};
  const double ulp = ulps * std::numeric_limits<V>::epsilon();
  for (const TileLanes lanes : {TileLanes::kQueries, TileLanes::kKeys}) {
    Tiles<V> t(site, shape.gap, lanes);
    std::vector<V> after = t.scores, pulled = t.dscores;
    const auto count = static_cast<std::size_t>(part.gradient_size());
    std::vector<double> sums(count, 0.25), expected = sums, sizes(count, 1);
    part.apply(site, {}, t.of(after));
    part.pull(site, {}, t.of(t.scores), t.of(pulled), {{}, {}, sums.data()});
    for (index r = 0; r < site.queries; ++r) {
      for (index c = 0; c < site.keys; ++c) {
        const V s = t.of(t.scores).at(r, c), ds = t.of(t.dscores).at(r, c);
        if (ds == 0) {
          ASSERT_EQ(t.of(pulled).at(r, c), 0);
          continue;
        }
        const V value = part.apply_one(site.at(r, c), {}, s);
        ASSERT_NEAR(t.of(after).at(r, c), value, ulp * std::max<double>(std::abs(value), size));
        std::vector<double> before = expected;
        const V dread = part.pull_one(site.at(r, c), {}, s, ds, {{}, {}, expected.data()});
        ASSERT_NEAR(t.of(pulled).at(r, c), dread, ulp * std::max<double>(std::abs(dread), size));
        for (std::size_t n = 0; n < count; ++n) sizes[n] += std::abs(expected[n] - before[n]);
      }
    }
    for (std::size_t n = 0; n < count; ++n) EXPECT_NEAR(sums[n], expected[n], ulp * sizes[n]);
  }
}

template <class V, class Make>
void expect_everywhere(Make&& make, double ulps, double size) {
  for_each_isa([&] {
    for (const Shape& shape : kShapes) {
      SCOPED_TRACE(std::to_string(shape.queries) + " x " + std::to_string(shape.keys));
      expect_definition<V>(make(V{}), shape, ulps, size);
    }
  });
}

template <class F>
void expect_lambda(const char* name, F f, double ulps = 8, double size = 1) {
  SCOPED_TRACE(name);
  const auto make = [&](auto v) { return of<decltype(v)>(f); };
  EXPECT_EQ(make(0.0).name(), "function") << "by vectors";
  expect_everywhere<float>(make, ulps, size);
  expect_everywhere<double>(make, ulps, size);
}

TEST(Traced, EveryOperationIsThatOfDualNumbers) {
  expect_lambda(
      "arithmetic", [](auto s) { return 2 * s + s / 3 - (1 - s) * s; }, 8, 4);
  expect_lambda(
      "quotients", [](auto s) { return (s + 1) / (s * s + 2) - -s; }, 8, 4);
  expect_lambda(
      "in place",
      [](auto s) {
        auto y = s;
        y += 2;
        y *= s;
        y -= 3 * s;
        return y /= s * s + 1;
      },
      8, 8);
  expect_lambda(
      "exp, log", [](auto s) { return exp(-s) + log(s * s + 0.5); }, 8, 16);
  expect_lambda(
      "tanh, sqrt", [](auto s) { return tanh(s) * sqrt(s * s + 1); }, 16, 2);
  expect_lambda(
      "sin, cos", [](auto s) { return sin(s) + cos(2 * s); }, 16, 2);
  expect_lambda(
      "abs, min, max", [](auto s) { return abs(s - 0.25) + min(s, 0.5) * max(2 * s, s * s); }, 8,
      8);
  expect_lambda(
      "comparisons",
      [](auto s) {
        const auto a = select(s > 0.5, s, 2 * s), b = select(s <= -0.5, s * s, s);
        const auto c = select(s >= 1, a, 3), d = select(s < -1, b, 0.5 * s);
        return a * b + select(s == c, c, d) + select(s != c, a, b);
      },
      16, 16);
  expect_lambda("a constant", [](auto) { return 3; });
  expect_lambda("nothing", [](auto s) { return s; });
}

// A score that the chosen side would not survive, on the other.
TEST(Traced, WhatIsNotSelectedHasNoGradient) {
  expect_lambda(
      "select", [](auto s) { return select(s > 0, sqrt(s), log(1 - s)); }, 16, 4);
}

TEST(Traced, PlacesAreThoseOfTheScore) {
  expect_lambda("head", [](auto s, const Place auto& at) { return s * (at.head + 1); });
  expect_lambda(
      "i, j",
      [](auto s, const Place auto& at) {
        return s + 0.001 * at.i - at.j / 512.0 + 2 * at.i - at.j * 2;
      },
      8, 8000);
  expect_lambda(
      "distance",
      [](auto s, const Place auto& at) {
        return s * exp(-abs(at.position() - at.j) / 100.0) + sin(0.01 * (at.j - at.position()));
      },
      16, 4);
  expect_lambda(
      "comparisons",
      [](auto s, const Place auto& at) {
        return select(at.j > at.position(), s, select(at.i >= at.j - 3, 2 * s, 3 * s)) +
               select(at.i == 50, s, 0 * s) + select(at.j < 80, s, select(at.j <= 90, s, 0 * s)) +
               select(at.j != at.i + 37, s, 4 * s);
      },
      8, 8);
  expect_lambda(
      "lengths",
      [](auto s, const Place auto& at) {
        return s * at.queries / at.keys + min(at.i, at.j) - max(at.offset, 5 - at.j);
      },
      8, 1000);
}

TEST(Traced, LearnedNumbersHaveTheirGradient) {
  const auto expect = [](const char* name, auto f, double ulps, double size) {
    SCOPED_TRACE(name);
    const auto run = [&](auto v) {
      using V = decltype(v);
      std::array<V, 3> p = {V{2.5}, V{0.125}, V{-1}}, dp = {};
      const auto make = [&](V) { return of(Learned<V, 3>{p, dp}, f); };
      EXPECT_EQ(make(0).name(), "function");
      expect_everywhere<V>(make, ulps, size);
    };
    run(0.0f);
    run(0.0);
  };
  expect(
      "cap", [](auto s, const auto& a) { return a[0] * tanh(s / a[0]) + a[1] * s; }, 16, 2);
  expect(
      "their own functions",
      [](auto s, const auto& a) {
        return exp(a[0] * a[1]) * s + tanh(a[1] / a[2]) * (s * s) + sqrt(a[0]) - abs(a[2]);
      },
      16, 8);
  expect(
      "places",
      [](auto s, const Place auto& at, const auto& a) {
        return s * exp(-abs(at.position() - at.j) * a[1]) + a[2] * log(1 + abs(at.i - at.j));
      },
      16, 8);
  expect(
      "nothing but learned", [](auto, const auto& a) { return a[0] * a[1]; }, 8, 1);
  // A branch on what is learned is one branch for all.
  expect(
      "branch", [](auto s, const auto& a) { return a[2] < 0 ? a[0] * s : a[1] * s; }, 8, 1);
}

// A branch on a score: the definition, score by score, and the name says so.
TEST(Traced, AFunctionThatBranchesIsItsDefinition) {
  const auto expect = [](auto f) {
    const auto part = of<float>(f);
    EXPECT_EQ(part.name(), "function (score by score: it branches)");
    for (const Shape& shape : kShapes) expect_definition<float>(part, shape, 0, 0);
  };
  expect([](auto s) { return s > 0 ? s * s : 0.1f * s; });
  expect([](auto s, const Place auto& at) noexcept {
    if (at.j == at.i) return 2 * s;
    return s;
  });
  // It comes to its end, whatever the number that it is tried with.
  expect([](auto s) {
    while (abs(s) > 0.1f) s = s / 2;
    return s;
  });
  const auto long_one = [](auto s) {
    auto sum = s;
    for (int n = 0; n < 500; ++n) sum += s * (1.0f / (n + 1.0f));
    return sum;
  };
  EXPECT_EQ(of<float>(long_one).name(), "function (score by score: it takes too many steps)");
  expect_definition<float>(of<float>(long_one), kShapes[0], 0, 0);
}

TEST(Traced, TheNameKnowsOfTheBackward) {
  const auto part = of<float>([](auto s) {
    auto sum = s;
    for (int n = 1; n < 60; ++n) sum = tanh(sum) / (abs(sum) + n);
    return sum;
  });
  EXPECT_EQ(part.name(), "function (score by score: it takes too many steps)");
  expect_definition<float>(part, kShapes[0], 8, 1);
}

TEST(Traced, ComparesAsTheDefinitionDoes) {
  std::array<float, 1> learned = {0.3f}, dlearned = {};
  const auto branch = of(Learned<float, 1>{learned, dlearned},
                         [](auto s, const auto& a) { return a[0] <= 0.3 ? 2 * s : s; });
  const auto quotient = of<float>([](auto s, const Place auto& at) {
    return select(abs(at.position() - at.j) / 7.0 <= 6, s, -s);
  });
  for_each_isa([&] {
    expect_definition<float>(branch, kShapes[0], 0, 0);
    for (const Shape& shape : kShapes) expect_definition<float>(quotient, shape, 0, 0);
  });
}

TEST(Traced, WhatTheFunctionThrowsPassesThrough) {
  const Sequence sequence{.queries = 4, .keys = 4};
  std::vector<float> tile(16);
  const auto apply = [&](const BiasPart<float>& part) {
    part.apply({sequence, 0, 0, 4, 0, 4}, {}, {tile.data(), 4, TileLanes::kKeys});
  };
  const auto always = of<float>([](auto s) {
    if (std::isfinite(1.0)) throw std::runtime_error("mine");
    return s;
  });
  EXPECT_THROW(apply(always), std::runtime_error);
  // No score of the call is 1/2.
  const auto never = of<float>([](auto s) {
    if (s == 0.5f) throw std::runtime_error("mine");
    return s;
  });
  EXPECT_NO_THROW(apply(never));
}

// Captured numbers may change between calls.
TEST(Traced, WhatIsCapturedIsAsItIsNow) {
  float cap = 1;
  const auto part = of<float>([&cap](auto s) { return cap * s; });
  const Sequence sequence{.queries = 1, .keys = 1};
  for (const float factor : {2.0f, 3.0f}) {
    cap = factor;
    float score = 5;
    part.apply({sequence, 0, 0, 1, 0, 1}, {}, {&score, 1, TileLanes::kKeys});
    EXPECT_EQ(score, 5 * factor);
  }
}

// Floats hold whole numbers up to 2^24; distances are taken before.
TEST(Traced, DistancesAreExactHoweverLongTheSequence) {
  const index far = (index{1} << 40) + 1;
  const Sequence sequence{.queries = far + 64, .keys = far + 64};
  const TileSite site{sequence, 0, far, 3, far - 7, 20};
  const auto part =
      of<float>([](auto s, const Place auto& at) { return s + abs(at.position() - at.j); });
  const auto causal = of<float>(
      [](auto s, const Place auto& at) { return select(at.j <= at.position(), s + 1, s - 1); });
  std::vector<float> tile(60), step(60);
  part.apply(site, {}, {tile.data(), 20, TileLanes::kKeys});
  causal.apply(site, {}, {step.data(), 20, TileLanes::kKeys});
  for (index r = 0; r < 3; ++r) {
    for (index c = 0; c < 20; ++c) {
      const auto n = static_cast<std::size_t>(r * 20 + c);
      EXPECT_EQ(tile[n], static_cast<float>(std::abs(r + 7 - c)));
      EXPECT_EQ(step[n], c - 7 <= r ? 1.0f : -1.0f);
      EXPECT_EQ(part.value(site.at(r, c), 0), tile[n]);
    }
  }
}

// Forms that are no Place keep their dual numbers, whatever they do to the site.
TEST(Traced, LambdasThatTakeASiteAreCalledForEachScore) {
  int calls = 0;
  const auto part = of<float>([&calls](auto s, const auto& site) {
    ++calls;
    return s + 0.5f * static_cast<float>(std::abs(site.j / 2 - site.i % 3)) * s.value;
  });
  EXPECT_EQ(part.name(), "function (score by score: it takes a ScoreSite)");
  const Sequence sequence{.queries = 4, .keys = 5};
  std::vector<float> tile(20, 1);
  part.apply({sequence, 0, 0, 4, 0, 5}, {}, {tile.data(), 5, TileLanes::kKeys});
  EXPECT_EQ(calls, 20);
  EXPECT_EQ(tile[19], 1 + 0.5f * 2);
}

// Mods as people write them: gradients of the whole call, through the fused kernels.
TEST(Traced, ModsHaveTheirGradients) {
  std::array<double, 2> p = {0.7, 1.3}, dp = {};
  const Learned<double, 2> learned{p, dp};
  const std::vector<std::pair<const char*, Bias<double>>> mods = {
      {"softcap", of(learned, [](auto s, const auto& a) { return a[0] * tanh(s / a[0]); })},
      {"alibi", of(learned,
                   [](auto s, const Place auto& at, const auto& a) {
                     return s - a[0] * exp(-at.head * a[1]) * abs(at.position() - at.j);
                   })},
      {"logarithm of the distance",
       of(learned, [](auto s, const Place auto& at,
                      const auto& a) { return s + a[0] * log(a[1] + abs(at.position() - at.j)); })},
      {"tanh temperature",
       of(learned, [](auto s, const auto& a) { return a[0] * tanh(a[1] * s); })},
      {"decay", of(learned,
                   [](auto s, const Place auto& at, const auto& a) {
                     return a[1] * s * exp(-abs(at.position() - at.j) / (10 * a[0]));
                   })},
      {"period",
       of(learned, [](auto s, const Place auto& at,
                      const auto& a) { return s + a[0] * cos(a[1] * (at.position() - at.j)); })},
      {"leaky",
       of(learned, [](auto s, const auto& a) { return select(s > 0, a[1] * s, 0.1 * a[0] * s); })},
      {"near and far", of(learned,
                          [](auto s, const Place auto& at, const auto& a) {
                            return select(at.position() - at.j < 16, s + a[0], sqrt(a[1] + s * s));
                          })},
  };
  for (const auto& [name, mod] : mods) {
    SCOPED_TRACE(name);
    Call<double> call({.T = 70, .S = 70, .H = 2, .G = 1, .D = 4, .Dv = 3}, 2);
    const Attention<double> attention{.bias = mod, .mask = mask::Causal()};
    expect_gradients(call, attention);
    for (std::size_t n = 0; n < p.size(); ++n) {
      const double old = p[n], step = 1e-5;
      const auto loss = [&](double at) {
        p[n] = at;
        call.forward(attention);
        double sum = 0;
        for (std::size_t i = 0; i < call.o.size(); ++i) sum += call.o[i] * call.d_o[i];
        return sum;
      };
      const double slope = (loss(old + step) - loss(old - step)) / (2 * step);
      p[n] = old;
      EXPECT_NEAR(slope, dp[n], 1e-7 * (1 + std::abs(dp[n]))) << "parameter " << n;
    }
  }
}

TEST(Traced, SameBitsForAnyNumberOfThreads) {
  std::array<float, 2> p = {2.5f, 0.03f}, dp = {}, expected = {};
  const Attention<float> attention{.bias = of(Learned<float, 2>{p, dp},
                                              [](auto s, const Place auto& at, const auto& a) {
                                                return a[0] * tanh(s / a[0]) -
                                                       a[1] * abs(at.position() - at.j);
                                              }),
                                   .mask = mask::Causal()};
  const Sizes sizes{.B = 2, .T = 300, .S = 520, .H = 4, .G = 2, .D = 16, .Dv = 16};
  Call<float> one(sizes);
  one.run(attention);
  expected = dp;
  for (const int threads : {2, 3, 8}) {
    Call<float> call(sizes);
    call.run(attention, Method::kFused, threads);
    EXPECT_TRUE(same_results(call, one));
    EXPECT_EQ(dp, expected);
  }
}

}  // namespace
}  // namespace fovea::testing
