// SPDX-License-Identifier: Apache-2.0
// KERPLE by hand, and in whole calls.
#include <gmock/gmock.h>

#include <cmath>
#include <limits>
#include <numeric>
#include <string>
#include <vector>

#include "fovea/attention/bias/distance.h"
#include "tests/attention/support/bias_checks.h"
#include "tests/attention/support/gradients.h"
#include "tests/support/throws.h"

namespace fovea::testing {
namespace {

using bias::Kerple;

TEST(Kerple, IsTheLogarithmOfTheDistance) {
  const Sequence sequence{.queries = 3, .keys = 5};
  const std::vector<double> r = {0.5, 2, 1, 0.25};  // r1 of both heads, then r2
  const Kerple<double> kerple({r.data(), 2, 2});
  EXPECT_DOUBLE_EQ(kerple.value({sequence, 0, 0, 0}, 1), 1 - 0.5 * std::log(3))
      << "query 0 stands at key 2";
  EXPECT_EQ(kerple.value({sequence, 0, 2, 4}, 1), 1);
  EXPECT_DOUBLE_EQ(kerple.value({sequence, 1, 0, 4}, 0), -2 * std::log(1.5)) << "ahead as behind";
  EXPECT_EQ(kerple.gradient_size(), 0);
  EXPECT_EQ(kerple.name(), "kerple");
}

struct Case {
  const char* name;
  Sizes sizes;
  Mask mask;
  std::vector<std::vector<double>> rows;  // of weights, before they are normalised
  Packed packed = {};
};

// With r1 = r2 = 1 and equal scores, the weight of a key is 1 / (1 + its distance). Values with one
// column for each key show it.
void expect_weights(const Case& one) {
  SCOPED_TRACE(one.name);
  const std::vector<double> r = {1, 1};
  Sizes sizes = one.sizes;
  sizes.Dv = sizes.S;
  Call<double> call(sizes);
  std::fill(call.q.begin(), call.q.end(), 0.0);
  for (index j = 0; j < sizes.S; ++j) {
    for (index c = 0; c < sizes.S; ++c) call.v_row(0, j, 0)[c] = j == c ? 1 : 0;
  }
  const Attention<double> attention{
      .bias = Kerple<double>({r.data(), 2, 1}), .mask = one.mask, .packed = one.packed};
  for (const Method method : {Method::kReference, Method::kFused}) {
    call.forward(attention, method);
    for (index i = 0; i < sizes.T; ++i) {
      const auto& row = one.rows[static_cast<std::size_t>(i)];
      const double sum = std::accumulate(row.begin(), row.end(), 0.0);
      for (index j = 0; j < sizes.S; ++j) {
        const double weight = row[static_cast<std::size_t>(j)];
        EXPECT_NEAR(call.o_row(0, i, 0)[j], weight == 0 ? 0 : weight / sum, 1e-14)
            << "query " << i << ", key " << j;
      }
    }
  }
}

TEST(Kerple, WeightsByHand) {
  const double half = 1.0 / 2, third = 1.0 / 3, fourth = 1.0 / 4;
  const std::vector<std::int32_t> length = {3}, queries = {0, 1, 3}, keys = {0, 2, 4};
  const std::vector<Case> cases = {
      {"more keys than queries",
       {.T = 2, .S = 4},
       {},
       {{third, half, 1, half}, {fourth, third, half, 1}}},
      {"more queries than keys", {.T = 3, .S = 2}, {}, {{half, third}, {1, half}, {half, 1}}},
      {"causal", {.T = 2, .S = 4}, mask::Causal(), {{third, half, 1, 0}, {fourth, third, half, 1}}},
      {"causal, a query before all keys",
       {.T = 3, .S = 2},
       mask::Causal(),
       {{0, 0}, {1, 0}, {half, 1}}},
      {"top-left",
       {.T = 2, .S = 4},
       mask::Causal(Align::kTopLeft),
       {{1, 0, 0, 0}, {half, 1, 0, 0}}},
      {"lengths",
       {.T = 2, .S = 4},
       mask::KeyLengths(view_of(length)),
       {{half, 1, half, 0}, {third, half, 1, 0}}},
      {"packed",
       {.T = 3, .S = 4},
       {},
       {{half, 1, 0, 0}, {0, 0, 1, half}, {0, 0, half, 1}},
       {view_of(queries), view_of(keys)}}};
  for (const Case& one : cases) expect_weights(one);
}

// And NaN stays NaN: a diverging model is noticed.
TEST(Kerple, NumbersThatAreTooSmallCountAsTheLeast) {
  const Sequence sequence{.queries = 9, .keys = 9};
  const std::vector<double> small = {-3, 0.5, 0.002, 0}, least = {0.01, 0.5, 0.01, 0.01};
  std::vector<double> dr(4);
  const Kerple<double> kerple({small.data(), 2, 2}, {dr.data(), 2, 2});
  const Kerple<double> expected({least.data(), 2, 2}, {dr.data(), 2, 2});
  for (const index head : {0, 1}) {
    for (const index j : {0, 3, 8}) {
      const ScoreSite site{sequence, head, 7, j};
      EXPECT_EQ(kerple.value(site, 2), expected.value(site, 2));
      std::vector<double> sums(2), expected_sums(2);
      kerple.add_parameters(site, 2, 1, sums.data());
      expected.add_parameters(site, 2, 1, expected_sums.data());
      EXPECT_EQ(sums, expected_sums);
      EXPECT_LT(sums[0], 0);
      EXPECT_LT(sums[1], 0) << "training brings it back";
    }
  }
  const std::vector<double> none = {std::numeric_limits<double>::quiet_NaN(), 1};
  EXPECT_TRUE(std::isnan(Kerple<double>({none.data(), 2, 1}).value({sequence, 0, 7, 3}, 2)));
}

TEST(Kerple, TilesAreTheDefinition) {
  for_each_isa([] {
    expect_tiles_of_form<Kerple<float>, float>();
    expect_tiles_of_form<Kerple<double>, double>();
  });
}

template <class V>
struct KerpleNumbers {
  std::vector<V> r = {V(0.5), V(1.5), V(2), V(0.25)}, dr = r;

  Bias<V> bias(const Mask&) { return Kerple<V>({r.data(), 2, 2}, {dr.data(), 2, 2}); }
  std::vector<V> gradient() const { return dr; }
};

TEST(Kerple, GradientsAreThoseOfTheForward) {
  const std::vector<std::int32_t> lengths = {21, 9};
  for (const Mask& mask :
       {Mask(), mask::Causal() & mask::Window(15, 0), Mask(mask::Causal(Align::kTopLeft)),
        Mask(mask::KeyLengths(view_of(lengths)))}) {
    for (const Method method : {Method::kReference, Method::kFused}) {
      KerpleNumbers<double> numbers;
      Call<double> call({.B = 2, .T = 18, .S = 21, .H = 2, .G = 1, .D = 4, .Dv = 3}, 2);
      expect_gradients(call,
                       {.bias = numbers.bias(mask), .mask = mask, .dropout = {.probability = 0.2}},
                       {{"r", numbers.r, numbers.dr}}, method);
    }
  }
}

TEST(Kerple, InFloatIsNoWorseThanPlain) {
  expect_no_worse_than_plain<KerpleNumbers>({});
  expect_no_worse_than_plain<KerpleNumbers>(mask::Causal());
  expect_no_worse_than_plain<KerpleNumbers>(mask::Causal(Align::kTopLeft) & mask::Window(50, 0));
}

TEST(Kerple, BitsDependOnTheSequenceAlone) {
  for_each_isa([] {
    expect_same_bits_for_threads<KerpleNumbers>({});
    expect_same_bits_for_threads<KerpleNumbers>(mask::Causal());
    expect_packed_is_padded<KerpleNumbers>({});
    expect_packed_is_padded<KerpleNumbers>(mask::Causal());
  });
}

TEST(Kerple, NamesWhatDoesNotFit) {
  std::vector<float> x(10, 0.5f), dx(10);
  const auto r = [&](index rows, index H) { return Rows<const float>(x.data(), rows, H); };
  const auto run = [](const Kerple<float>& kerple) {
    Call<float> call({.T = 3, .S = 5, .H = 2, .D = 2, .Dv = 2});
    call.run({.bias = kerple});
  };
  run(Kerple<float>(r(2, 2), {dx.data(), 2, 2}));
  EXPECT_THROWS(run(Kerple<float>(r(2, 3))), kShape,
                "r of kerple must be [2, H=2], r1 and r2; it is [2, 3]");
  EXPECT_THROWS(run(Kerple<float>(r(1, 2))), kShape, "it is [1, 2]");
  EXPECT_THROWS(run(Kerple<float>(r(2, 2), {dx.data(), 2, 1})), kShape,
                "dr of kerple must be [2, H=2] or empty; it is [2, 1]");
  EXPECT_THROWS(run(Kerple<float>(Rows<const float>(nullptr, 2, 2))), kShape, "but no data");
}

TEST(Kerple, NamesWhatOverlaps) {
  std::vector<float> x(10, 0.5f), dx(10);
  const Kerple<float> kerple({x.data(), 2, 2}, {dx.data(), 2, 2});
  OverlapCheck reads, writes;
  kerple.name_parameters(reads);
  EXPECT_THROWS(reads.write("o", Vec<float>{x.data(), 2}), kShape, "o overlaps r of kerple");
  kerple.name_gradients(writes);
  EXPECT_THROWS(writes.write("dq", Vec<float>{dx.data() + 3, 2}), kShape,
                "dq overlaps the gradient of r of kerple");
}

}  // namespace
}  // namespace fovea::testing
