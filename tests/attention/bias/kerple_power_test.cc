// SPDX-License-Identifier: Apache-2.0
// The power form of KERPLE by hand, against plain loops, and in whole calls.
#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "fovea/attention/bias/distance.h"
#include "tests/attention/support/bias_checks.h"
#include "tests/attention/support/gradients.h"
#include "tests/support/throws.h"

namespace fovea::testing {
namespace {

using bias::KerplePower;

TEST(KerplePower, IsThePowerOfTheDistance) {
  const Sequence sequence{.queries = 3, .keys = 5};
  const std::vector<double> r = {0.5, 2, 2, 0.5};  // r1 of both heads, then r2
  const KerplePower<double> power({r.data(), 2, 2});
  EXPECT_DOUBLE_EQ(power.value({sequence, 0, 0, 4}, 1), 1 - 0.5 * 4) << "query 0 stands at key 2";
  EXPECT_DOUBLE_EQ(power.value({sequence, 0, 0, 0}, 1), 1 - 0.5 * 4) << "behind as ahead";
  EXPECT_EQ(power.value({sequence, 0, 2, 4}, 1), 1);
  EXPECT_DOUBLE_EQ(power.value({sequence, 1, 2, 0}, 0), -4) << "2 sqrt(4)";
  EXPECT_EQ(power.gradient_size(), 0);
  EXPECT_EQ(power.name(), "kerple_power");
}

// The output and the gradient of r of one causal call, by loops over single scores.
struct Plain {
  std::vector<double> o, dr;

  Plain(const Call<double>& call, const std::vector<double>& r) : o(call.o.size()), dr(r.size()) {
    for (index h = 0; h < call.H; ++h) {
      for (index i = 0; i < call.T; ++i) row(call, r, h, i);
    }
  }

 private:
  static double dot(const double* a, const double* b, index n) {
    double sum = 0;
    for (index c = 0; c < n; ++c) sum += a[c] * b[c];
    return sum;
  }
  // Heads share the one head of k and v.
  void row(const Call<double>& call, const std::vector<double>& r, index h, index i) {
    const index p = i + call.S - call.T, H = call.H, D = call.D, Dv = call.Dv;
    const auto u = [&](index n) { return static_cast<std::size_t>(n); };
    const double r1 = r[u(h)], r2 = r[u(H + h)];
    const double* const q = call.q.data() + (i * H + h) * D;
    const double* const d_o = call.d_o.data() + (i * H + h) * Dv;
    std::vector<double> weights;
    double sum = 0, delta = 0;
    for (index j = 0; j <= p; ++j) {
      const double score = dot(q, call.k.data() + j * D, D) / std::sqrt(static_cast<double>(D));
      weights.push_back(std::exp(score - r1 * std::pow(static_cast<double>(p - j), r2)));
      sum += weights.back();
    }
    for (index j = 0; j <= p; ++j) {
      weights[u(j)] /= sum;
      for (index c = 0; c < Dv; ++c) {
        o[u((i * H + h) * Dv + c)] += weights[u(j)] * call.v[u(j * Dv + c)];
      }
      delta += weights[u(j)] * dot(d_o, call.v.data() + j * Dv, Dv);
    }
    for (index j = 0; j < p; ++j) {  // at p - j = 0 the bias is 0 whatever r is
      const double ds = weights[u(j)] * (dot(d_o, call.v.data() + j * Dv, Dv) - delta);
      const double power = std::pow(static_cast<double>(p - j), r2);
      dr[u(h)] -= ds * power;
      dr[u(H + h)] -= ds * r1 * power * std::log(static_cast<double>(p - j));
    }
  }
};

TEST(KerplePower, IsPlainLoops) {
  const std::vector<double> r = {0.5, 0.03, 0.75, 1.9};
  Call<double> call({.T = 130, .S = 150, .H = 2, .G = 1, .D = 5, .Dv = 3}, 9);
  const Plain plain(call, r);
  for_each_isa([&] {
    for (const Method method : {Method::kReference, Method::kFused}) {
      std::vector<double> dr(4);
      call.run({.bias = KerplePower<double>({r.data(), 2, 2}, {dr.data(), 2, 2}),
                .mask = mask::Causal()},
               method);
      EXPECT_LE(largest_difference(call.o, plain.o), 1e-13);
      EXPECT_LE(largest_difference(dr, plain.dr), 1e-12 * largest_magnitude(plain.dr));
    }
  });
}

// And NaN stays NaN: a diverging model is noticed.
TEST(KerplePower, NumbersOutOfRangeCountAsTheNearest) {
  const Sequence sequence{.queries = 9, .keys = 9};
  const std::vector<double> given = {-3, 0.5, 2.5, 0}, counted = {0.01, 0.5, 2, 0.01};
  std::vector<double> dr(4);
  const KerplePower<double> power({given.data(), 2, 2}, {dr.data(), 2, 2});
  const KerplePower<double> expected({counted.data(), 2, 2}, {dr.data(), 2, 2});
  for (const index head : {0, 1}) {
    for (const index j : {0, 3, 7, 8}) {
      const ScoreSite site{sequence, head, 7, j};
      EXPECT_EQ(power.value(site, 2), expected.value(site, 2));
      std::vector<double> sums(2), expected_sums(2);
      power.add_parameters(site, 2, 1, sums.data());
      expected.add_parameters(site, 2, 1, expected_sums.data());
      EXPECT_EQ(sums, expected_sums);
      if (j == 7) {
        EXPECT_EQ(sums, std::vector<double>(2)) << "at the query itself";
      } else {
        EXPECT_LT(sums[0], 0) << "training brings it back";
      }
      if (j < 6) {
        EXPECT_LT(sums[1], 0);
      }
    }
  }
  for (const std::size_t place : {0, 1}) {
    std::vector<double> none = {1, 1};
    none[place] = std::numeric_limits<double>::quiet_NaN();
    EXPECT_TRUE(std::isnan(KerplePower<double>({none.data(), 2, 1}).value({sequence, 0, 7, 3}, 2)));
  }
}

TEST(KerplePower, TilesAreTheDefinition) {
  for_each_isa([] {
    expect_tiles_of_form<KerplePower<float>, float>();
    expect_tiles_of_form<KerplePower<double>, double>();
  });
}

template <class V>
struct KerplePowerNumbers {
  std::vector<V> r = {V(0.5), V(0.25), V(0.75), V(1.5)}, dr = r;

  Bias<V> bias(const Mask&) { return KerplePower<V>({r.data(), 2, 2}, {dr.data(), 2, 2}); }
  std::vector<V> gradient() const { return dr; }
};

TEST(KerplePower, GradientsAreThoseOfTheForward) {
  const std::vector<std::int32_t> lengths = {21, 9};
  const auto expect = [](const Mask& mask, Method method) {
    KerplePowerNumbers<double> numbers;
    Call<double> call({.B = 2, .T = 18, .S = 21, .H = 2, .G = 1, .D = 4, .Dv = 3}, 2);
    expect_gradients(call,
                     {.bias = numbers.bias(mask), .mask = mask, .dropout = {.probability = 0.2}},
                     {{"r", numbers.r, numbers.dr}}, method);
  };
  for (const Mask& mask :
       {Mask(), mask::Causal() & mask::Window(15, 0), Mask(mask::Causal(Align::kTopLeft)),
        Mask(mask::KeyLengths(view_of(lengths)))}) {
    expect(mask, Method::kReference);
    for_each_isa([&] { expect(mask, Method::kFused); });
  }
}

TEST(KerplePower, InFloatIsNoWorseThanPlain) {
  expect_no_worse_than_plain<KerplePowerNumbers>({});
  expect_no_worse_than_plain<KerplePowerNumbers>(mask::Causal());
  expect_no_worse_than_plain<KerplePowerNumbers>(mask::Causal(Align::kTopLeft) &
                                                 mask::Window(50, 0));
}

TEST(KerplePower, BitsDependOnTheSequenceAlone) {
  for_each_isa([] {
    expect_same_bits_for_threads<KerplePowerNumbers>({});
    expect_same_bits_for_threads<KerplePowerNumbers>(mask::Causal());
    expect_packed_is_padded<KerplePowerNumbers>({});
    expect_packed_is_padded<KerplePowerNumbers>(mask::Causal());
  });
}

TEST(KerplePower, NamesWhatDoesNotFit) {
  std::vector<float> x(10, 0.5f), dx(10);
  const auto r = [&](index rows, index H) { return Rows<const float>(x.data(), rows, H); };
  const auto run = [](const KerplePower<float>& power) {
    Call<float> call({.T = 3, .S = 5, .H = 2, .D = 2, .Dv = 2});
    call.run({.bias = power});
  };
  run(KerplePower<float>(r(2, 2), {dx.data(), 2, 2}));
  EXPECT_THROWS(run(KerplePower<float>(r(2, 3))), kShape,
                "r of kerple_power must be [2, H=2], r1 and r2; it is [2, 3]");
  EXPECT_THROWS(run(KerplePower<float>(r(1, 2))), kShape, "it is [1, 2]");
  EXPECT_THROWS(run(KerplePower<float>(r(2, 2), {dx.data(), 2, 1})), kShape,
                "dr of kerple_power must be [2, H=2] or empty; it is [2, 1]");
  EXPECT_THROWS(run(KerplePower<float>(Rows<const float>(nullptr, 2, 2))), kShape, "but no data");
}

TEST(KerplePower, NamesWhatOverlaps) {
  std::vector<float> x(10, 0.5f), dx(10);
  const KerplePower<float> power({x.data(), 2, 2}, {dx.data(), 2, 2});
  OverlapCheck reads, writes;
  power.name_parameters(reads);
  EXPECT_THROWS(reads.write("o", Vec<float>{x.data(), 2}), kShape, "o overlaps r of kerple_power");
  power.name_gradients(writes);
  EXPECT_THROWS(writes.write("dq", Vec<float>{dx.data() + 3, 2}), kShape,
                "dq overlaps the gradient of r of kerple_power");
}

}  // namespace
}  // namespace fovea::testing
