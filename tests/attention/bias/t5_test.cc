// SPDX-License-Identifier: Apache-2.0
// The buckets of T5 against tables that were computed apart from this library.
#include <gmock/gmock.h>

#include <utility>
#include <vector>

#include "fovea/attention/bias/distance.h"
#include "tests/attention/support/call.h"
#include "tests/support/throws.h"

namespace fovea::testing {
namespace {

using bias::t5_bucket;
using bias::T5Direction;
using bias::T5Options;

struct First {
  index first;  // distance
  index bucket;
};

// Each run ends where the next begins; the last one is for all that is beyond.
void expect_buckets(const std::vector<First>& runs, index offset, index sign, index buckets,
                    const T5Options& options) {
  for (std::size_t n = 0; n < runs.size(); ++n) {
    const index end = n + 1 < runs.size() ? runs[n + 1].first : 3000;
    for (index distance = runs[n].first; distance < end; ++distance) {
      ASSERT_EQ(t5_bucket(sign * distance, buckets, options), offset + runs[n].bucket)
          << "distance " << sign * distance;
    }
  }
}

// 16 buckets each way, max_distance 128: exact up to 7, then 8 x 2^(k / 2), k = 0 .. 7, of which
// 16, 32 and 64 lie on a border.
const std::vector<First> kSixteen = {{0, 0},   {1, 1},   {2, 2},   {3, 3},  {4, 4},   {5, 5},
                                     {6, 6},   {7, 7},   {8, 8},   {12, 9}, {16, 10}, {23, 11},
                                     {32, 12}, {46, 13}, {64, 14}, {91, 15}};

TEST(T5Bucket, BidirectionalIsThatOfThePaper) {
  expect_buckets(kSixteen, 0, -1, 32, {});
  const std::vector<First> ahead(kSixteen.begin() + 1, kSixteen.end());
  expect_buckets(ahead, 16, 1, 32, {});
  expect_buckets(kSixteen, 0, -1, 33, {});
}

TEST(T5Bucket, CausalIsThatOfThePaper) {
  const T5Options causal{.direction = T5Direction::kCausal};
  expect_buckets({{0, 0},   {1, 1},   {2, 2},   {3, 3},   {4, 4},   {5, 5},   {6, 6},   {7, 7},
                  {8, 8},   {9, 9},   {10, 10}, {11, 11}, {12, 12}, {13, 13}, {14, 14}, {15, 15},
                  {16, 16}, {19, 17}, {21, 18}, {24, 19}, {27, 20}, {31, 21}, {35, 22}, {40, 23},
                  {46, 24}, {52, 25}, {59, 26}, {67, 27}, {77, 28}, {87, 29}, {99, 30}, {113, 31}},
                 0, -1, 32, causal);
  expect_buckets({{1, 0}}, 0, 1, 32, causal);
  expect_buckets(kSixteen, 0, -1, 16, causal);
}

// ln(12 / 8) / ln(27 / 8) is a third: times 9 it is 3, and as floats 2.9999998.
TEST(T5Bucket, OnABorderTheFloatDecides) {
  const T5Options causal{T5Direction::kCausal, 27};
  EXPECT_EQ(t5_bucket(-12, 17, causal), 8 + 2);
  EXPECT_EQ(t5_bucket(-18, 17, causal), 8 + 5);
  EXPECT_EQ(t5_bucket(-19, 17, causal), 8 + 6);
}

// With few distances up to max_distance, some buckets are left out.
TEST(T5Bucket, SomeBucketsMayBeEmpty) {
  const T5Options causal{T5Direction::kCausal, 9};
  expect_buckets({{0, 0}, {1, 1}, {2, 2}, {3, 3}, {4, 4}, {5, 5}, {6, 6}, {7, 7}, {8, 8}, {9, 15}},
                 0, -1, 16, causal);
}

// Whole tiles, near and far from the query, in every table.
TEST(T5, TilesAreTheDefinition) {
  const Sequence sequence{.queries = 400, .keys = 500};
  struct Table {
    index buckets;
    T5Options options;
  };
  const std::vector<Table> tables = {{32, {}},
                                     {33, {}},
                                     {4, {.max_distance = 20}},
                                     {2, {T5Direction::kCausal, 7}},
                                     {16, {T5Direction::kCausal, 9}},
                                     {17, {T5Direction::kCausal, 27}},
                                     {32, {T5Direction::kCausal, 1000}}};
  for (const auto& [buckets, options] : tables) {
    const auto table = normals<double>(3, buckets * 2);
    auto dtable = table;
    const bias::T5<double> t5(Rows<const double>(table.data(), buckets, 2),
                              Rows<double>(dtable.data(), buckets, 2), options);
    for (const index key : {0, 64, 128, 192, 256, 448}) {
      const TileSite site{sequence, 1, 64, 64, key, 52};
      std::vector<double> tile(64 * 64), ones(64 * 64, 1.0);
      t5.apply(site, {}, {tile.data(), 64, TileLanes::kKeys});
      std::vector<double> sums(static_cast<std::size_t>(buckets)), expected = sums;
      t5.pull(site, {}, {}, {ones.data(), 64, TileLanes::kKeys}, {{}, {}, sums.data()});
      for (index r = 0; r < site.queries; ++r) {
        for (index c = 0; c < site.keys; ++c) {
          ASSERT_EQ(tile[static_cast<std::size_t>(r * 64 + c)], t5.value(site.at(r, c), 0));
          t5.add_parameters(site.at(r, c), 0, 1, expected.data());
        }
      }
      EXPECT_EQ(sums, expected);
    }
  }
}

TEST(T5, NamesWhatDoesNotFit) {
  std::vector<float> x(100), dx(100);
  const auto table = [&](index buckets, index H) {
    return Rows<const float>(x.data(), buckets, H);
  };
  const auto run = [](const bias::T5<float>& t5) {
    Call<float> call({.T = 3, .S = 5, .H = 2, .D = 2, .Dv = 2});
    call.run({.bias = t5});
  };
  run(bias::T5<float>(table(4, 2), {dx.data(), 4, 2}));
  EXPECT_THROWS(run(bias::T5<float>(table(8, 3))), kShape, "[buckets, H=2]; it is [8, 3]");
  EXPECT_THROWS(run(bias::T5<float>(table(8, 2), {dx.data(), 7, 2})), kShape,
                "dtable of t5 must be [8, H=2] or empty; it is [7, 2]");
  EXPECT_THROWS(run(bias::T5<float>(Rows<const float>(nullptr, 8, 2))), kShape, "but no data");
  EXPECT_THROWS(bias::T5<float>(table(3, 2)), kShape, "at least 4 buckets; there are 3");
  EXPECT_THROWS(t5_bucket(0, 1, {.direction = T5Direction::kCausal}), kShape, "at least 2");
  EXPECT_THROWS(bias::T5<float>(table(32, 2), {}, {.max_distance = 8}), kOptionValue,
                "max_distance must be above 8, for so many distances have a bucket each; it is 8");
}

}  // namespace
}  // namespace fovea::testing
