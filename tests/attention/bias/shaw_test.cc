// SPDX-License-Identifier: Apache-2.0
// Shaw's relative positions on keys and values, through whole calls.
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "tests/attention/support/golden.h"
#include "tests/attention/support/gradients.h"
#include "tests/isa.h"
#include "tests/support/throws.h"

namespace fovea::testing {
namespace {

/// Tables for keys and values, and their gradients.
template <class V>
struct Tables {
  index clip, D, Dv;
  ShawOrder order = ShawOrder::kQueryMinusKey;
  std::vector<V> k = normals<V>(51, rows() * D), v = normals<V>(52, rows() * Dv);
  std::vector<V> dk = std::vector<V>(k.size(), V{-77}), dv = std::vector<V>(v.size(), V{-77});

  index rows() const { return 2 * clip + 1; }
  bias::Shaw<V> keys() {
    return bias::Shaw<V>({k.data(), rows(), D}, {dk.data(), rows(), D}, order);
  }
  values::Shaw<V> values() {
    return values::Shaw<V>({v.data(), rows(), Dv}, {dv.data(), rows(), Dv}, order);
  }
  void reverse() {
    for (index r = 0; r < clip; ++r) {
      std::swap_ranges(k.begin() + r * D, k.begin() + (r + 1) * D,
                       k.begin() + (rows() - 1 - r) * D);
      std::swap_ranges(v.begin() + r * Dv, v.begin() + (r + 1) * Dv,
                       v.begin() + (rows() - 1 - r) * Dv);
    }
  }
};

// Golden value 7 (support/golden.h): self-attention of X with s = 2 and the order i-j. Rows the
// other way round make the order j-i.
const golden::Values kShawO = {0.860292251131,  0.96811753296,   0.959292533866,  0.833039372594,
                               0.614345588274,  0.519714867679,  0.356807328874,  0.144425840523,
                               -0.048380684527, -0.098358205609, -0.138555470441, -0.164167575089,
                               -0.555465559811, -0.59778138211,  -0.57323101082,  -0.483151723754,
                               -0.27657593045,  -0.099986595367, 0.081232064997,  0.242547921747};

template <class V>
void expect_golden(Method method) {
  Tables<V> tables{2, 4, 4};
  tables.k = sines<V>(20, 0.21, 0.5);
  tables.v = sines<V>(20, 0.33, 0.4);
  Call<V> call = golden::self_call<V>();
  call.forward({.bias = tables.keys(), .values = tables.values()}, method);
  golden::expect_values(call.o, kShawO);
  tables.reverse();
  tables.order = ShawOrder::kKeyMinusQuery;
  call.forward({.bias = tables.keys(), .values = tables.values()}, method);
  golden::expect_values(call.o, kShawO);
}

TEST(Shaw, MatchesGoldenValuesInBothOrders) {
  expect_golden<double>(Method::kReference);
  for_each_isa([] {
    expect_golden<float>(Method::kFused);
    expect_golden<double>(Method::kFused);
  });
}

TEST(Shaw, GradientsAreThoseOfTheForward) {
  for (const ShawOrder order : {ShawOrder::kQueryMinusKey, ShawOrder::kKeyMinusQuery}) {
    Tables<double> tables{3, 4, 3, order};
    Call<double> call({.T = 18, .S = 21, .H = 2, .G = 1, .D = 4, .Dv = 3}, 2);
    const Attention<double> attention{.bias = tables.keys() + bias::Softcap<double>(3),
                                      .mask = mask::Causal() & mask::Window(15, 0),
                                      .dropout = {.probability = 0.2},
                                      .values = tables.values()};
    for (const Method method : {Method::kReference, Method::kFused}) {
      expect_gradients(call, attention,
                       {{"keys", tables.k, tables.dk}, {"values", tables.v, tables.dv}}, method);
    }
  }
}

struct Case {
  Sizes sizes;
  index clip;
  Mask mask = {};
  ShawOrder order = ShawOrder::kQueryMinusKey;
};

void expect_definition(const Case& one) {
  // Names of their own: clang 14's lambdas cannot hold those of a structured binding.
  const Sizes& sizes = one.sizes;
  const Mask& mask = one.mask;
  const index clip = one.clip;
  const auto order = one.order;
  SCOPED_TRACE(::testing::Message() << "T=" << sizes.T << " S=" << sizes.S << " D=" << sizes.D
                                    << " clip=" << clip << " " << mask.name());
  Tables<double> exact{clip, sizes.D, sizes.Dv, order};
  const auto attention = [mask = mask](Tables<double>& tables) {
    return Attention<double>{.bias = tables.keys(), .mask = mask, .values = tables.values()};
  };
  Call<double> reference(sizes, 5);
  reference.run(attention(exact), Method::kReference);
  for_each_isa([&] {
    Tables<double> tables{clip, sizes.D, sizes.Dv, order};
    Call<double> fused(sizes, 5);
    fused.run(attention(tables), Method::kFused, 2);
    EXPECT_LE(difference(fused.o, reference.o), 1e-12);
    EXPECT_LE(difference(fused.lse, reference.lse), 1e-12);
    EXPECT_LE(difference(fused.dq, reference.dq), 1e-11);
    EXPECT_LE(difference(fused.dk, reference.dk), 1e-11);
    EXPECT_LE(difference(fused.dv, reference.dv), 1e-11);
    EXPECT_LE(difference(tables.dk, exact.dk), 1e-10);
    EXPECT_LE(difference(tables.dv, exact.dv), 1e-10);
  });
}

// Lengths around tiles and blocks, fewer and more queries than keys, clips from none to all.
TEST(Shaw, FusedIsTheDefinitionAcrossTiles) {
  const Mask causal = mask::Causal(), top_left = mask::Causal(Align::kTopLeft);
  const ShawOrder ahead = ShawOrder::kKeyMinusQuery;
  const std::vector<Case> cases = {
      {{.T = 1, .S = 1, .D = 3, .Dv = 2}, 0},
      {{.T = 1, .S = 300, .H = 2, .G = 1, .D = 16, .Dv = 16}, 16},
      {{.T = 300, .S = 1, .D = 5, .Dv = 16}, 40, {}, ahead},
      {{.T = 63, .S = 65, .D = 16, .Dv = 3}, 1, causal},
      {{.T = 128, .S = 128, .H = 4, .G = 2, .D = 9, .Dv = 17}, 16, causal, ahead},
      {{.T = 300, .S = 300, .D = 8, .Dv = 8}, 16, causal},
      {{.T = 300, .S = 300, .H = 2, .G = 2, .D = 7, .Dv = 5}, 40, {}, ahead},
      {{.T = 290, .S = 300, .D = 6, .Dv = 6}, 299, causal},
      {{.T = 300, .S = 140, .D = 6, .Dv = 6}, 4, causal, ahead},
      {{.T = 140, .S = 300, .D = 6, .Dv = 6}, 4, top_left},
      {{.T = 300, .S = 140, .D = 6, .Dv = 6}, 20, top_left, ahead},
      {{.B = 2, .T = 257, .S = 257, .D = 6, .Dv = 6}, 0, mask::Window(30, 20)},
      {{.T = 257, .S = 300, .D = 6, .Dv = 6}, 31, mask::Strided(9)},
  };
  for (const Case& one : cases) expect_definition(one);
}

// A clip that no distance reaches is no clip: other rows are never met, and have gradient 0.
TEST(Shaw, RowsBeyondEveryDistanceAreNeverMet) {
  constexpr Sizes kSizes{.T = 70, .S = 70, .D = 8, .Dv = 8};
  Tables<double> exact{69, 8, 8}, wide{80, 8, 8};
  std::copy(exact.k.begin(), exact.k.end(), wide.k.begin() + 11 * 8);
  std::copy(exact.v.begin(), exact.v.end(), wide.v.begin() + 11 * 8);
  for (auto* table : {&wide.k, &wide.v}) {
    std::fill_n(table->begin(), 11 * 8, NAN);
    std::fill_n(table->end() - 11 * 8, 11 * 8, NAN);
  }
  Call<double> one(kSizes, 1), other(kSizes, 1);
  one.run({.bias = exact.keys(), .values = exact.values()});
  other.run({.bias = wide.keys(), .values = wide.values()});
  EXPECT_TRUE(same_results(one, other));
  for (const auto& [gradient, part] : {std::pair{&wide.dk, &exact.dk}, {&wide.dv, &exact.dv}}) {
    EXPECT_TRUE(std::equal(part->begin(), part->end(), gradient->begin() + 11 * 8));
    EXPECT_TRUE(std::all_of(gradient->begin(), gradient->begin() + 11 * 8,
                            [](double x) { return x == 0; }));
  }
}

// Rows of keys ahead, which a causal mask drops, may hold anything.
TEST(Shaw, PoisonInRowsThatTheMaskDropsReachesNobody) {
  for_each_isa([] {
    Tables<float> clean{4, 16, 7}, bad = clean;
    for (auto* table : {&bad.k, &bad.v}) {
      const auto width = static_cast<index>(table->size()) / bad.rows();
      std::fill_n(table->begin(), 4 * width, std::numeric_limits<float>::infinity());
    }
    Call<float> one({.T = 150, .S = 150, .D = 16, .Dv = 7}, 3), other = one;
    one.run({.bias = clean.keys(), .mask = mask::Causal(), .values = clean.values()});
    other.run({.bias = bad.keys(), .mask = mask::Causal(), .values = bad.values()});
    EXPECT_LE(difference(one.o, other.o), 1e-5);
    EXPECT_LE(difference(one.dq, other.dq), 1e-5);
    EXPECT_LE(difference(one.dk, other.dk), 1e-5);
    EXPECT_LE(difference(one.dv, other.dv), 1e-5);
    EXPECT_LE(difference(clean.dk, bad.dk), 1e-4);
    EXPECT_LE(difference(clean.dv, bad.dv), 1e-4);
  });
}

TEST(Shaw, GradientsMayBeLeftOut) {
  Tables<float> tables{4, 6, 6};
  Call<float> all({.T = 20, .S = 30, .D = 6, .Dv = 6}, 3), some = all;
  all.run({.bias = tables.keys(), .values = tables.values()});
  const Rows<const float> k(tables.k.data(), 9, 6), v(tables.v.data(), 9, 6);
  some.run({.bias = bias::Shaw<float>(k), .values = values::Shaw<float>(v)});
  EXPECT_TRUE(same_results(all, some));
}

TEST(Shaw, ConcatMeetsRowsThatAreWiderByOne) {
  const std::vector<float> w(8), k(27);
  const auto run = [&](index width) {
    const bias::Shaw<float> shaw(Rows<const float>(k.data(), 3, width));
    Call<float> call({.T = 3, .S = 5, .D = 4, .Dv = 2});
    call.run({.score = score::Concat<float>{{w.data(), 1, 8}}, .bias = shaw});
  };
  run(5);
  EXPECT_THROWS(run(4), kShape,
                "the table of shaw must be [2s+1, D=5]; it is [3, 4]; the score concat makes rows "
                "of D + 1");
}

TEST(Shaw, NamesWhatDoesNotFit) {
  const std::vector<float> x(100);
  const auto table = [&](index rows, index W) { return Rows<const float>(x.data(), rows, W); };
  const auto run = [](const Attention<float>& attention) {
    Call<float> call({.T = 3, .S = 5, .D = 2, .Dv = 4});
    call.run(attention);
  };
  run({.bias = bias::Shaw<float>(table(3, 2)), .values = values::Shaw<float>(table(5, 4))});
  EXPECT_THROWS(run({.bias = bias::Shaw<float>(table(3, 4))}), kShape, "must be [2s+1, D=2]");
  EXPECT_THROWS(run({.values = values::Shaw<float>(table(3, 2))}), kShape, "must be [2s+1, Dv=4]");
  EXPECT_THROWS(bias::Shaw<float>(table(4, 2)), kShape, "an odd number; it has 4");
  EXPECT_THROWS(values::Shaw<float>(table(2, 4)), kShape, "an odd number; it has 2");
  EXPECT_EQ(bias::Shaw<float>(table(3, 2)).name(), "shaw");
  EXPECT_EQ(values::Shaw<float>(table(3, 2), {}, ShawOrder::kKeyMinusQuery).name(), "shaw(j-i)");
}

}  // namespace
}  // namespace fovea::testing
