// SPDX-License-Identifier: Apache-2.0
// Traced functions of C++ beside the same functions written out.
#include "fovea/attention/lambda/trace.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <functional>
#include <numeric>
#include <string>
#include <vector>

#include "tests/attention/support/call.h"
#include "tests/isa.h"
#include "tests/support/throws.h"

namespace fovea::testing {
namespace {

const Sizes kSizes{.B = 2, .T = 90, .S = 150, .H = 3, .G = 3, .D = 8, .Dv = 8};
const Sizes kOneHead{.B = 1, .T = 90, .S = 150, .H = 1, .G = 1, .D = 8, .Dv = 8};
constexpr index kKinds = 5;

struct Graph {
  std::vector<std::int32_t> kinds;  // [B, T, S]
  std::vector<double> table = normals<double>(7, kSizes.H*kKinds), gradient = table;

  Graph() {
    for (index n = 0; n < kSizes.B * kSizes.T * kSizes.S; ++n) {
      kinds.push_back(static_cast<std::int32_t>(n * 7 % 11 % kKinds));
    }
  }
  std::size_t entry(index b, index h, index i, index j) const {
    const auto at = static_cast<std::size_t>((b * kSizes.T + i) * kSizes.S + j);
    return static_cast<std::size_t>(h * kKinds + kinds[at]);
  }
};

TEST(Trace, WholeConstantsAreNumbers) {
  Call<double> whole(kSizes), real(kSizes);
  const AttentionSizes sizes = whole.in().sizes();
  whole.run({.bias = bias::traced<double>(
                 sizes, [](TracedNumber s, const TracedPlace&) { return 30 * tanh(s / 30); })});
  real.run({.bias = bias::traced<double>(
                sizes, [](TracedNumber s, const TracedPlace&) { return 30.0 * tanh(s / 30.0); })});
  EXPECT_EQ(whole.o, real.o);
  EXPECT_EQ(whole.dq, real.dq);
}

TEST(Trace, ConditionsMeetPlainOnes) {
  Call<double> mixed(kSizes), plain(kSizes);
  const AttentionSizes sizes = mixed.in().sizes();
  const bool yes = true;
  mixed.run({.bias = bias::traced<double>(sizes, [&](TracedNumber s, const TracedPlace& at) {
               return select((s > 0 && yes) || (!yes || at.i == 3), s, 0.1f * s - 1);
             })});
  plain.run({.bias = bias::traced<double>(sizes, [](TracedNumber s, const TracedPlace& at) {
               return select(s > 0 || at.i == TracedNumber(3), s, s * 0.1f - 1.0);
             })});
  EXPECT_EQ(mixed.o, plain.o);
  EXPECT_EQ(mixed.dq, plain.dq);
}

// Graphormer's bias, as a table and as a matrix.
TEST(Trace, AFunctionThatReadsTablesIsTheMatrixOfItsValues) {
  Graph graph;
  Call<double> call(kSizes), dense(kSizes);
  const Captured<std::int32_t> kinds(graph.kinds.data(), {kSizes.B, kSizes.T, kSizes.S});
  const Captured<double> table(graph.table.data(), {kSizes.H, kKinds}, graph.gradient.data());
  const auto bias =
      bias::traced<double>(call.in().sizes(), [&](TracedNumber s, const TracedPlace& at) {
        return s + table(at.head, kinds(at.batch, at.i, at.j));
      });
  std::vector<double> matrix, dmatrix;
  for (index b = 0; b < kSizes.B; ++b) {
    for (index h = 0; h < kSizes.H; ++h) {
      for (index i = 0; i < kSizes.T; ++i) {
        for (index j = 0; j < kSizes.S; ++j) matrix.push_back(graph.table[graph.entry(b, h, i, j)]);
      }
    }
  }
  dmatrix.resize(matrix.size());
  const auto view = [](auto& values) {
    return ScoreView<double>::contiguous(values.data(), kSizes.B, kSizes.H, kSizes.T, kSizes.S);
  };
  dense.run({.bias = bias::Dense<double>(view(matrix), view(dmatrix))});
  std::vector<double> expected(graph.table.size());
  for (index b = 0, n = 0; b < kSizes.B; ++b) {
    for (index h = 0; h < kSizes.H; ++h) {
      for (index i = 0; i < kSizes.T; ++i) {
        for (index j = 0; j < kSizes.S; ++j, ++n) {
          expected[graph.entry(b, h, i, j)] += dmatrix[static_cast<std::size_t>(n)];
        }
      }
    }
  }
  for_each_isa([&] {
    call.run({.bias = bias}, Method::kFused, 2);
    EXPECT_LT(difference(call.o, dense.o), 1e-12);
    EXPECT_LT(difference(call.dq, dense.dq), 1e-12);
    EXPECT_LT(difference(graph.gradient, expected), 1e-11);
  });
}

template <class V>
void expect_sum_with(const std::vector<V>& values) {
  Call<float> call(kSizes), dense(kSizes);
  const Captured<V> table(values.data(), {kSizes.T, kSizes.S});
  const auto bias = bias::traced<float>(
      call.in().sizes(),
      [&](TracedNumber s, const TracedPlace& at) { return s + table(at.i, at.j); });
  const std::vector<float> matrix(values.begin(), values.end());
  dense.run({.bias = bias::Dense<float>(
                 ScoreView<const float>::contiguous(matrix.data(), 1, 1, kSizes.T, kSizes.S))});
  for_each_isa([&] {
    call.run({.bias = bias});
    EXPECT_LT(difference(call.o, dense.o), 1e-5);
    EXPECT_LT(difference(call.dk, dense.dk), 1e-5);
  });
}

TEST(Trace, ATableMayHoldNumbersOfAnyType) {
  std::vector<std::int64_t> whole;
  for (index n = 0; n < kSizes.T * kSizes.S; ++n) whole.push_back(n * 7 % 11 % 5);
  expect_sum_with(whole);
  expect_sum_with(std::vector<std::int32_t>(whole.begin(), whole.end()));
  expect_sum_with(std::vector<std::uint8_t>(whole.begin(), whole.end()));
  expect_sum_with(std::vector<double>(whole.begin(), whole.end()));
  expect_sum_with(std::vector<float>(whole.begin(), whole.end()));
}

TEST(Trace, ACallReadsWhatItsTablesHoldThen) {
  std::vector<float> slopes = {1, 2, 3};
  const auto linear = [](const Call<float>& call, const Captured<float>& of) {
    return bias::traced<float>(call.in().sizes(), [&](TracedNumber s, const TracedPlace& at) {
      return s - of(at.head) * abs(at.i - at.j);
    });
  };
  Call<float> call(kOneHead), fresh(kOneHead);
  const Captured<float> changing(slopes.data(), {3});
  const auto bias = linear(call, changing);
  call.run({.bias = bias});
  slopes[0] = .1F;
  call.run({.bias = bias});
  fresh.run({.bias = linear(fresh, changing)});
  EXPECT_TRUE(same_results(call, fresh));
}

TEST(Trace, SoDoesAMaskAndTheScaleThatCountsItsKeys) {
  std::vector<float> reach = {5, 70, 149};
  const Captured<float> table(reach.data(), {3});
  Call<float> call(kOneHead), fresh(kOneHead);
  const auto masks = [&] {
    const Mask mask = mask::traced(
        call.in().sizes(), [&](const TracedPlace& at) { return at.j - at.i <= table(at.head); });
    return std::vector<Attention<float>>{{.mask = mask},
                                         {.bias = bias::LogNScale<float>(10, mask)}};
  };
  for (const Attention<float>& attention : masks()) {
    call.run(attention);
    reach[0] += 40;
    call.run(attention);
    fresh.run(masks()[attention.mask.parts().empty() ? 1 : 0]);
    EXPECT_TRUE(same_results(call, fresh));
  }
}

using Numbers = std::array<double, 3>;  // the score, i and j

struct Function {
  std::string name;
  std::function<TracedNumber(TracedNumber, const TracedPlace&)> traced;
  std::function<double(const Numbers&)> plain;
};

double floor_of(double a, double b) { return std::floor(a / b); }

std::vector<Function> functions() {
  using N = TracedNumber;
  using P = const TracedPlace&;
  return {
      {"arithmetic", [](N s, P at) { return (2 * s - at.i / 3.0) * 0.5 + 1.0 / (at.j + 1.5) - -s; },
       [](const Numbers& x) { return (2 * x[0] - x[1] / 3) * 0.5 + 1 / (x[2] + 1.5) + x[0]; }},
      {"assignment",
       [](N s, P at) {
         s += at.i;
         s *= 0.25;
         s -= at.j;
         return s /= 4.0;
       },
       [](const Numbers& x) { return ((x[0] + x[1]) * 0.25 - x[2]) / 4; }},
      {"functions",
       [](N s, P) {
         return exp(-abs(s)) + log(1 + s * s) + tanh(s) + sqrt(1 + s * s) + sin(s) * cos(s) +
                erf(s) + pow(1 + abs(s), 1.5);
       },
       [](const Numbers& x) {
         const double s = x[0];
         return std::exp(-std::abs(s)) + std::log(1 + s * s) + std::tanh(s) + std::sqrt(1 + s * s) +
                std::sin(s) * std::cos(s) + std::erf(s) + std::pow(1 + std::abs(s), 1.5);
       }},
      {"whole numbers",
       [](N s, P at) {
         return s + 0.01 * (((at.i ^ (at.j << 1)) & 31) + ((at.i | 4) >> 1) + (at.j - at.i) % 7 +
                            floor_divide(at.i - at.j, 8));
       },
       [](const Numbers& x) {
         const auto i = static_cast<int>(x[1]), j = static_cast<int>(x[2]);
         const int rest = ((j - i) % 7 + 7) % 7;
         return x[0] + 0.01 * (((i ^ (j << 1)) & 31) + ((i | 4) >> 1) + rest + floor_of(i - j, 8));
       }},
      {"conditions",
       [](N s, P at) {
         const N near = abs(at.i - at.j) <= 3 || at.j == 0;
         const N other = !(at.i < 5) && at.j != 7 && at.i > at.j && at.i >= 8;
         return select(near, s, select(other, min(s, 0.25), max(floor(s * 2), round(s))));
       },
       [](const Numbers& x) {
         const auto [s, i, j] = x;
         if (std::abs(i - j) <= 3 || j == 0) return s;
         const bool other = i >= 5 && j != 7 && i > j && i >= 8;
         return other ? std::min(s, 0.25) : std::max(std::floor(s * 2), std::nearbyint(s));
       }},
      {"both zeros",
       [](N s, P at) { return s + max(-5, min(5, 1.0 / select(at.i < at.j, 0.0, -0.0))); },
       [](const Numbers& x) { return x[0] + (x[1] < x[2] ? 5 : -5); }},
      {"constants", [](N s, P) { return s * (N(3) + 4 * N(0.5)) + select(N(1) < N(2), 5, 6); },
       [](const Numbers& x) { return x[0] * 5 + 5; }},
  };
}

TEST(Trace, EachOperationIsWhatItsNameSays) {
  const Call<double> call(kSizes);
  for (const Function& one : functions()) {
    SCOPED_TRACE(one.name);
    const auto traced = bias::traced<double>(call.in().sizes(), one.traced);
    ASSERT_EQ(traced.parts()[0]->name(), "traced");
    const Sequence sequence{.queries = kSizes.T, .keys = kSizes.S};
    for_each_isa([&] {
      std::vector<double> scores = normals<double>(3, 64 * 90);
      const std::vector<double> before = scores;
      const ScoreTile<double> tile{scores.data(), 64, TileLanes::kQueries};
      const TileSite site{sequence, 1, 16, 64, 32, 90};
      traced.parts()[0]->apply(site, {}, tile);
      for (index r = 0; r < site.queries; ++r) {
        for (index c = 0; c < site.keys; ++c) {
          const Numbers at = {before[static_cast<std::size_t>(c * 64 + r)],
                              static_cast<double>(site.query + r),
                              static_cast<double>(site.key + c)};
          ASSERT_NEAR(tile.at(r, c), one.plain(at), 1e-10)
              << at[0] << ", " << at[1] << ", " << at[2];
        }
      }
    });
  }
}

// Documents, of which a query sees its own up to itself.
TEST(Trace, AMaskKeepsWhatItsFunctionSays) {
  constexpr index T = 400;
  const Call<float> call({.B = 2, .T = T, .S = T, .H = 2, .G = 2, .D = 4, .Dv = 4});
  std::vector<std::int64_t> ids;
  for (index n = 0; n < 2 * T; ++n) ids.push_back(n / (n < T ? 60 : 90));
  const Captured<std::int64_t> document(ids.data(), {2, T});
  const Mask mask = mask::traced(call.in().sizes(), [&](const TracedPlace& at) {
    return document(at.batch, at.i) == document(at.batch, at.j) && at.j <= at.i;
  });
  for (index b = 0; b < 2; ++b) {
    const Sequence sequence{.number = b, .batch = b, .queries = T, .keys = T};
    for (index i = 0; i < T; ++i) {
      for (index j = 0; j < T; ++j) {
        const bool same =
            ids[static_cast<std::size_t>(b * T + i)] == ids[static_cast<std::size_t>(b * T + j)];
        ASSERT_EQ(mask.keeps({sequence, 0, i, j}), same && j <= i) << b << ", " << i << ", " << j;
      }
    }
  }
  const auto plan = attention_plan<float>(Context(1), {.mask = mask}, call.in());
  EXPECT_LT(plan.tiles_kept, plan.tiles / 2);
}

TEST(Trace, ThreeConditionsHaveARangeOfKeys) {
  const Call<float> call({.B = 1, .T = 300, .S = 300, .H = 1, .G = 1, .D = 4, .Dv = 4});
  const Mask mask = mask::traced(call.in().sizes(), [](const TracedPlace& at) {
    return at.j <= at.i && at.i - at.j < 20 && at.j >= 5;
  });
  const Sequence sequence{.queries = 300, .keys = 300};
  EXPECT_EQ(mask.key_range(sequence, 0, 100, 10), (std::pair<index, index>{81, 110}));
  EXPECT_EQ(mask.key_range(sequence, 0, 10, 1), (std::pair<index, index>{5, 11}));
}

TEST(Trace, OfNothingButAConstantIsThatConstant) {
  const Call<float> call(kSizes);
  const Mask all = mask::traced(call.in().sizes(), [](const TracedPlace&) { return 1 < 2; });
  const Mask none = mask::traced(call.in().sizes(), [](const TracedPlace&) { return false; });
  const Sequence sequence{.queries = kSizes.T, .keys = kSizes.S};
  EXPECT_EQ(all.classify({sequence, 0, 0, 64, 0, 64}), TileKind::kAll);
  EXPECT_EQ(none.classify({sequence, 0, 0, 64, 0, 64}), TileKind::kNone);
}

void expect_error(const std::function<void()>& f, const std::string& words) {
  const auto error = error_of(f);
  ASSERT_TRUE(error.has_value()) << words;
  EXPECT_THAT(std::string(error->what()), ::testing::HasSubstr(words));
}

TEST(Trace, ACallWithoutTokensHasGradientsOfZero) {
  for (const Sizes& sizes : {Sizes{.B = 0, .T = 4, .S = 4, .H = 2, .G = 2},
                             Sizes{.B = 2, .T = 4, .S = 0, .H = 2, .G = 2}}) {
    Call<float> call(sizes);
    const std::vector<float> values(8);
    std::vector<float> by_head(2), by_score(8);
    const Captured<float> slopes(values.data(), {2}, by_head.data()),
        table(values.data(), {2, 4}, by_score.data());
    const auto bias =
        bias::traced<float>(call.in().sizes(), [&](TracedNumber s, const TracedPlace& at) {
          return s + slopes(at.head) * at.i + table(at.head, at.j);
        });
    for (const Method method : {Method::kFused, Method::kReference}) {
      by_head.assign(2, 3);
      by_score.assign(8, 4);
      call.run({.bias = bias}, method);
      EXPECT_EQ(by_head, std::vector<float>(2));
      EXPECT_EQ(by_score, std::vector<float>(8));
    }
  }
}

TEST(Trace, AnOutputMayNotOverlapWhatIsCaptured) {
  Call<float> call({.B = 1, .T = 6, .S = 6, .H = 2, .G = 2, .D = 4, .Dv = 4});
  // Each lies in the last bytes of what the call writes.
  const Captured<float> in_o(call.o.data() + call.o.size() - 36, {6, 6});
  const Captured<std::uint8_t> in_lse(
      reinterpret_cast<const std::uint8_t*>(call.lse.data() + call.lse.size()) - 36, {6, 6});
  const auto bias = bias::traced<float>(
      call.in().sizes(),
      [&](TracedNumber s, const TracedPlace& at) { return s + in_o(at.i, at.j); });
  expect_error([&] { call.run({.bias = bias}); }, "o overlaps a captured tensor");
  const Mask mask =
      mask::traced(call.in().sizes(), [&](const auto& at) { return in_lse(at.i, at.j); });
  expect_error([&] { call.run({.mask = mask}); }, "lse overlaps a captured tensor");
}

TEST(Trace, SaysWhatCannotBe) {
  const std::vector<float> values(20);
  std::vector<float> gradient(20);
  std::vector<double> wide(20);
  const Captured<float> plain(values.data(), {4, 5}),
      learned(values.data(), {4, 5}, gradient.data());
  const Captured<double> other(wide.data(), {20}, wide.data());
  Call<float> call(kSizes);
  const auto bias = [&](const std::function<TracedNumber(TracedNumber, const TracedPlace&)>& f) {
    return bias::traced<float>(call.in().sizes(), f);
  };
  expect_error([&] { bias([&](auto s, const auto& at) { return s + plain(at.i); }); },
               "captured tensor of 2 axes is read at 1 indices");
  expect_error([&] { bias([&](auto s, const auto& at) { return plain(s, at.i); }); },
               "at no whole number");
  expect_error([&] { bias([&](auto s, const auto&) { return s + plain(7, 0); }); },
               "index 7 is beyond axis 0 of captured tensor 0, [4, 5]");
  expect_error(
      [&] {
        bias([&](auto s, const auto& at) {
          return s + learned(0, min(at.i, 4)) + learned(1, min(at.j, 4));
        });
      },
      "is read at two indices");
  expect_error([&] { bias([&](auto s, const auto&) { return s * other(3); }); },
               "another type than the call");
  expect_error([&] { plain(1, 2); }, "no traced function is being called");
  TracedNumber kept = 0;
  bias([&](auto s, const auto& at) { return kept = s + at.i; });
  expect_error([&] { bias([&](auto s, const auto&) { return s + kept; }); },
               "belongs to another function");
  expect_error([&] { Captured<float>(nullptr, {2, 3}); }, "sizes but no data");
  expect_error([&] { Captured<float>(values.data(), {1, 1, 1, 1, 1, 1, 1}); }, "has 7 axes");
  expect_error(
      [&] {
        bias([&](auto s, const auto&) {
          static_cast<void>(learned(0, 0));
          return s;
        });
      },
      "the result does not depend on it");
  expect_error(
      [&] { mask::traced(call.in().sizes(), [&](const auto&) { return learned(0, 0) > 0; }); },
      "a mask has no gradient");
  expect_error([&] { Captured<float>(values.data(), {2, -3}); }, "has size -3");
}

TEST(Trace, SaysWhichCallsItIsFor) {
  Call<float> call(kSizes);
  const auto bias = [&](const std::function<TracedNumber(TracedNumber, const TracedPlace&)>& f) {
    return bias::traced<float>(call.in().sizes(), f);
  };
  const auto part = bias([](auto s, const auto& at) { return s + at.i; });
  const std::vector<std::int32_t> offsets = {0, 40, 90}, key_offsets = {0, 100, 150};
  Call<float> packed({.B = 1, .T = 90, .S = 150, .H = 3, .G = 3, .D = 8, .Dv = 8});
  const auto one =
      bias::traced<float>(packed.in().sizes(), [](auto s, const auto& at) { return s + at.i; });
  const auto run_packed = [&](const Bias<float>& with) {
    packed.run({.bias = with, .packed = {view_of(offsets), view_of(key_offsets)}});
  };
  expect_error([&] { run_packed(one); }, "the part \"traced\" takes no packed sequences");
  const Mask near = mask::traced(packed.in().sizes(), [](const auto& at) { return at.j <= at.i; });
  const bias::LogNScale<float> counts(512, near);
  expect_error([&] { run_packed(counts); }, "takes no packed sequences");
  expect_error([&] { packed.run({.bias = part}); }, "the traced function is for B=2");
}

}  // namespace
}  // namespace fovea::testing
