// SPDX-License-Identifier: Apache-2.0
// The log n scale by hand, and in whole calls.
#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "fovea/attention/bias/distance.h"
#include "fovea/attention/bias/scaling.h"
#include "fovea/attention/call.h"
#include "tests/attention/support/bias_checks.h"
#include "tests/attention/support/gradients.h"
#include "tests/support/throws.h"

namespace fovea::testing {
namespace {

using bias::LogNScale;
using ::testing::DoubleEq;
using ::testing::Pointwise;

// The factors of all queries of the first head of a sequence, with N = 4.
std::vector<double> factors(const Mask& mask, Sequence sequence) {
  mask.limit(sequence);
  const LogNScale<double> part(4, mask);
  std::vector<double> of;
  for (index i = 0; i < sequence.queries; ++i) {
    of.push_back(part.value({sequence, 0, i, 0}, 3) / 3);
    EXPECT_EQ(part.derivative({sequence, 0, i, 0}, 3), of.back());
  }
  return of;
}

// log4(n) of n = 1, 2, 3, 4, 8, 16.
const double kThree = std::log(3) / std::log(4);
constexpr double kOne = 0, kTwo = 0.5, kFour = 1, kEight = 1.5, kSixteen = 2;

TEST(LogNScale, FactorsByHand) {
  const auto expect = [](const Mask& mask, const Sequence& sequence,
                         const std::vector<double>& expected) {
    SCOPED_TRACE(mask.name());
    EXPECT_THAT(factors(mask, sequence), Pointwise(DoubleEq(), expected));
  };
  const std::vector<std::int32_t> four = {4}, two = {2};
  const std::vector<std::uint8_t> kept = {1, 0, 1, 1, 0, 0, 0, 0};
  const auto dense = ScoreView<const std::uint8_t>::contiguous(kept.data(), 1, 1, 2, 4);
  const Mask causal = mask::Causal(), top_left = mask::Causal(Align::kTopLeft);
  expect({}, {.queries = 2, .keys = 16}, {kSixteen, kSixteen});
  expect(causal, {.queries = 4, .keys = 4}, {kOne, kTwo, kThree, kFour});
  expect(causal, {.queries = 2, .keys = 4}, {kThree, kFour});
  expect(causal, {.queries = 4, .keys = 2}, {0, 0, kOne, kTwo});
  expect(top_left, {.queries = 4, .keys = 2, .align = Align::kTopLeft}, {kOne, kTwo, kTwo, kTwo});
  expect(causal & mask::Window(1, 0), {.queries = 3, .keys = 3}, {kOne, kTwo, kTwo});
  expect(mask::KeyLengths(view_of(four)), {.queries = 2, .keys = 9}, {kFour, kFour});
  expect(mask::lengths(view_of(two)) & causal, {.queries = 9, .keys = 9}, {kOne, kTwo});
  expect(mask::Keep(dense), {.queries = 2, .keys = 4}, {kThree, 0});
  expect(mask::Dilated(2), {.queries = 1, .keys = 16}, {kEight});
}

TEST(LogNScale, EachHeadCountsItsOwnKeys) {
  const std::vector<std::int32_t> bounds = {1, 0, 3, 0};
  const LogNScale<double> part(4, mask::HeadWindows(Rows<const std::int32_t>(bounds.data(), 2, 2)));
  const Sequence sequence{.queries = 8, .keys = 8};
  EXPECT_DOUBLE_EQ(part.value({sequence, 0, 6, 5}, 3), 3 * kTwo);
  EXPECT_DOUBLE_EQ(part.value({sequence, 1, 6, 5}, 3), 3 * kFour);
}

// The part does to scores what a factor of the queries does.
void expect_scaled_queries(const Sizes& sizes, const Mask& mask, const Packed& packed = {}) {
  SCOPED_TRACE(mask.name());
  Call<double> call(sizes, 3), scaled = call;
  const Attention<double> plain{.mask = mask, .packed = packed};
  for (const Sequence& sequence : detail::make_sequences(plain, call.in())) {
    for (index n = 0; n < sequence.queries * sizes.H; ++n) {
      const index i = n / sizes.H, h = n % sizes.H;
      double kept = 0;
      for (index j = 0; j < sequence.keys; ++j) kept += mask.keeps({sequence, h, i, j}) ? 1 : 0;
      double* const q = scaled.q_row(sequence.batch, sequence.query_row + i, h);
      for (index d = 0; d < sizes.D; ++d) q[d] *= std::log(std::max(kept, 1.0)) / std::log(50);
    }
  }
  scaled.run(plain);
  for (const Method method : {Method::kReference, Method::kFused}) {
    call.run({.bias = LogNScale<double>(50, mask), .mask = mask, .packed = packed}, method);
    EXPECT_LE(difference(call.o, scaled.o), 1e-13);
    EXPECT_LE(difference(call.lse, scaled.lse), 1e-13);
    EXPECT_LE(difference(call.dk, scaled.dk), 1e-12);
    EXPECT_LE(difference(call.dv, scaled.dv), 1e-12);
  }
}

TEST(LogNScale, IsAScaleOfTheQueries) {
  const std::vector<std::int32_t> queries = {70, 12}, keys = {150, 81};
  const std::vector<std::int32_t> query_offsets = {0, 20, 70}, key_offsets = {0, 90, 150};
  const Packed packed{view_of(query_offsets), view_of(key_offsets)};
  const Sizes sizes{.B = 2, .T = 70, .S = 150, .H = 2, .G = 1, .D = 4, .Dv = 3};
  Sizes one = sizes;
  one.B = 1;
  const Mask windows = mask::Causal() & mask::Window(30, 0);
  const Mask lengths = mask::QueryLengths(view_of(queries)) & mask::KeyLengths(view_of(keys));
  for (const Mask& mask : {Mask(), Mask(mask::Causal()), Mask(mask::Causal(Align::kTopLeft)),
                           windows, Mask(mask::Strided(9)), windows & mask::Dilated(3)}) {
    expect_scaled_queries(sizes, mask);
    expect_scaled_queries(sizes, mask & lengths);
    expect_scaled_queries(one, mask, packed);
  }
}

// An added bias behind it is not multiplied, one before it is: two keys, by hand.
TEST(LogNScale, StandsBeforeWhatIsAdded) {
  Call<double> call({.T = 1, .S = 2, .D = 1, .Dv = 1});
  call.q = {1};
  call.k = {6, -2};
  call.v = {1, 0};
  const std::vector<double> slope = {0.75};
  const bias::Alibi<double> alibi({slope.data(), 1});
  const LogNScale<double> half(4, {});
  call.forward({.score = score::Dot{0.5}, .bias = half + alibi});
  EXPECT_NEAR(call.o[0], 1 / (1 + std::exp(-(0.5 * 4 - 0.75))), 1e-15);
  call.forward({.score = score::Dot{0.5}, .bias = alibi + half});
  EXPECT_NEAR(call.o[0], 1 / (1 + std::exp(-0.5 * (4 - 0.75))), 1e-15);
}

template <class V>
void expect_tiles(const Mask& mask) {
  SCOPED_TRACE(mask.name());
  const Sequence sequence{.queries = 150, .keys = 200};
  const LogNScale<V> part(20, mask);
  for (const TileLanes lanes : {TileLanes::kQueries, TileLanes::kKeys}) {
    const TileSite site{sequence, 0, 64, 60, 128, 52};
    const std::vector<V> before = normals<V>(4, 64 * 64);
    std::vector<V> after = before, slopes = before;
    const auto tile = [&](auto& values) { return ScoreTile<V>{values.data(), 64, lanes}; };
    std::vector<V> old = before;
    part.apply(site, {}, tile(after));
    part.pull(site, {}, {}, tile(slopes), {});
    for (index r = 0; r < site.queries; ++r) {
      for (index c = 0; c < site.keys; ++c) {
        ASSERT_EQ(tile(after).at(r, c), part.value(site.at(r, c), tile(old).at(r, c)));
        ASSERT_EQ(tile(slopes).at(r, c), tile(old).at(r, c) * part.derivative(site.at(r, c), V(0)));
      }
    }
    for (index n = 0; n < 64 * 64; ++n) {
      const index lanes_used = lanes == TileLanes::kQueries ? site.queries : site.keys;
      const auto at = static_cast<std::size_t>(n);
      EXPECT_TRUE(n % 64 < lanes_used || after[at] == before[at]) << "beyond a row";
    }
  }
}

TEST(LogNScale, TilesAreTheDefinition) {
  for (const Mask& mask : {Mask(), mask::Causal() & mask::Window(30, 0), Mask(mask::Strided(7))}) {
    expect_tiles<float>(mask);
    expect_tiles<double>(mask);
  }
}

template <class V>
struct LogNScaleNumbers {
  Bias<V> bias(const Mask& mask) { return LogNScale<V>(50, mask); }
  std::vector<V> gradient() const { return {}; }
};

TEST(LogNScale, GradientsAreThoseOfTheForward) {
  const std::vector<std::int32_t> lengths = {21, 9};
  for (const Mask& mask :
       {Mask(), mask::Causal() & mask::Window(15, 0), Mask(mask::Causal(Align::kTopLeft)),
        Mask(mask::KeyLengths(view_of(lengths))), Mask(mask::Strided(4))}) {
    SCOPED_TRACE(mask.name());
    for (const Method method : {Method::kReference, Method::kFused}) {
      Call<double> call({.B = 2, .T = 18, .S = 21, .H = 2, .G = 1, .D = 4, .Dv = 3}, 2);
      const Attention<double> attention{
          .bias = LogNScale<double>(5, mask), .mask = mask, .dropout = {.probability = 0.2}};
      expect_gradients(call, attention, {}, method);
    }
  }
}

// The scores of a row with one key are 0, and an empty row is as without the part.
TEST(LogNScale, RowsWithOneKeyAndWithNone) {
  for (const Method method : {Method::kReference, Method::kFused}) {
    Call<double> call({.T = 4, .S = 2, .D = 3, .Dv = 2});
    call.run({.bias = LogNScale<double>(4, mask::Causal()), .mask = mask::Causal()}, method);
    for (index i = 0; i < 3; ++i) {
      const bool empty = i < 2;
      EXPECT_EQ(call.lse_at(0, 0, i), empty ? -std::numeric_limits<double>::infinity() : 0);
      for (index c = 0; c < 2; ++c) {
        EXPECT_EQ(call.o_row(0, i, 0)[c], empty ? 0 : call.v_row(0, 0, 0)[c]);
      }
    }
    EXPECT_TRUE(std::all_of(call.dq.begin(), call.dq.begin() + 9, [](double x) { return x == 0; }));
  }
}

TEST(LogNScale, InFloatIsNoWorseThanPlain) {
  expect_no_worse_than_plain<LogNScaleNumbers>({});
  expect_no_worse_than_plain<LogNScaleNumbers>(mask::Causal());
  expect_no_worse_than_plain<LogNScaleNumbers>(mask::Causal(Align::kTopLeft) & mask::Window(50, 0));
  expect_no_worse_than_plain<LogNScaleNumbers>(mask::Strided(5));
}

TEST(LogNScale, BitsDependOnTheSequenceAlone) {
  for_each_isa([] {
    expect_same_bits_for_threads<LogNScaleNumbers>({});
    expect_same_bits_for_threads<LogNScaleNumbers>(mask::Causal());
    expect_packed_is_padded<LogNScaleNumbers>({});
    expect_packed_is_padded<LogNScaleNumbers>(mask::Causal());
    expect_packed_is_padded<LogNScaleNumbers>(mask::Causal() & mask::Strided(7));
  });
}

TEST(LogNScale, NamesWhatDoesNotFit) {
  const char* words = "log_n_scale: the reference length must be above 1 and finite; it is ";
  for (const double length : {1.0, 0.0, -512.0, double{NAN}, double{INFINITY}}) {
    EXPECT_THROWS(LogNScale<float>(length, {}), kOptionValue, words);
  }
  EXPECT_EQ(LogNScale<float>(512, mask::Causal()).name(), "log_n_scale(512)");
  const std::vector<std::int32_t> lengths = {5, 5};
  Call<float> call({.T = 3, .S = 5, .D = 2, .Dv = 2});
  const Mask other_batch = mask::KeyLengths(view_of(lengths));
  EXPECT_THROWS(call.run({.bias = LogNScale<float>(8, other_batch)}), kShape,
                "key_lengths must be [B=1]; it is [2]");
}

}  // namespace
}  // namespace fovea::testing
