// SPDX-License-Identifier: Apache-2.0
// Tiles against the definition, score by score, wherever the clip cuts through them.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "fovea/attention/relative/shaw.h"
#include "tests/attention/support/call.h"
#include "tests/isa.h"

namespace fovea::testing {
namespace {

struct Size {
  index queries, keys, key, clip, W;
  ShawOrder order = ShawOrder::kQueryMinusKey;
};

// The first query of the tile stands at position 100: tiles before, across and behind it, whole and
// odd, and clips from nothing to more than a tile.
std::vector<Size> sizes() {
  std::vector<Size> all;
  for (const auto& [queries, keys] :
       {std::pair<index, index>{64, 128}, {128, 64}, {19, 37}, {1, 1}}) {
    for (const index key : {0, 60, 97, 100, 110, 170, 240}) {
      for (const index clip : {0, 1, 4, 16, 40, 400}) {
        const bool odd = (key + clip) % 3 == 0;
        all.push_back({queries, keys, key, clip, odd ? 7 : 16,
                       odd ? ShawOrder::kKeyMinusQuery : ShawOrder::kQueryMinusKey});
      }
    }
  }
  return all;
}

// A tile and all that it meets; `lanes` decides how the scores lie, in rows of whole vectors.
template <class V>
struct Problem {
  Size size;
  Sequence sequence{.queries = 600, .keys = 600};
  TileSite site{sequence, 0, 100, size.queries, size.key, size.keys};
  std::vector<V> table = normals<V>(1, (2 * size.clip + 1) * size.W);
  std::vector<V> x = normals<V>(2, size.queries* size.W);
  std::vector<V> scores = normals<V>(3, size.queries* size.keys);

  V& score(index r, index c) { return scores[static_cast<std::size_t>(r * size.keys + c)]; }
  Rows<const V> x_rows() const { return {x.data(), size.queries, size.W}; }
  detail::ShawTable<V> shaw() const {
    return {{table.data(), 2 * size.clip + 1, size.W}, {}, size.order};
  }
  double dot(index r, index c) const {
    const V* row = shaw().rows[shaw().row_of(site.at(r, c))];
    double sum = 0;
    for (index w = 0; w < size.W; ++w) {
      sum += static_cast<double>(x_rows()[r][w]) * static_cast<double>(row[w]);
    }
    return sum;
  }
};

constexpr index kStride = 160;
constexpr float kOld = -77;

template <class V>
double near(double largest) {
  return 16 * std::numeric_limits<V>::epsilon() * (1 + largest);
}

template <class V>
std::vector<V> laid(Problem<V>& p, TileLanes lanes, index stride = kStride) {
  std::vector<V> tile(static_cast<std::size_t>(stride * std::max(p.size.queries, p.size.keys)),
                      V{kOld});
  const ScoreTile<V> view{tile.data(), stride, lanes};
  for (index r = 0; r < p.size.queries; ++r) {
    for (index c = 0; c < p.size.keys; ++c) view.at(r, c) = p.score(r, c);
  }
  return tile;
}

// Numbers between the rows of a tile are not touched: its rows are odd.
template <class V>
void expect_products(Problem<V> p) {
  const index stride = std::max(p.size.queries, p.size.keys) + 3;
  std::vector<std::vector<V>> results;
  for (const TileLanes lanes : {TileLanes::kQueries, TileLanes::kKeys}) {
    std::vector<V> tile = laid(p, lanes, stride), before = tile;
    const ScoreTile<V> view{tile.data(), stride, lanes}, old{before.data(), stride, lanes};
    detail::add_shaw_products<V>(p.site, p.shaw(), p.x_rows(), V{0.5}, view);
    std::vector<V> result;
    for (index r = 0; r < p.size.queries; ++r) {
      for (index c = 0; c < p.size.keys; ++c) {
        const double exact = static_cast<double>(p.score(r, c)) + 0.5 * p.dot(r, c);
        ASSERT_NEAR(view.at(r, c), exact, near<V>(10)) << r << " " << c;
        result.push_back(view.at(r, c));
        view.at(r, c) = old.at(r, c);
      }
    }
    EXPECT_EQ(tile, before) << "beyond the tile";
    results.push_back(result);
  }
  EXPECT_EQ(results[0], results[1]) << "the same bits in both layouts";
}

template <class V>
void expect_pulled(Problem<V> p) {
  const index W = p.size.W;
  for (V& score : p.scores) score = score < 0 ? V{0} : score;
  std::vector<V> dx(p.x.size(), V{1});
  std::vector<double> dtable(p.table.size(), 0.25), sums = dtable, expected(dx.size(), 1);
  std::vector<V> tile = laid(p, TileLanes::kKeys);
  detail::pull_shaw_products<V>(p.site, p.shaw(), p.x_rows(), V{0.5},
                                {tile.data(), p.size.queries, p.size.keys, kStride},
                                {{dx.data(), p.size.queries, W}, V{0.25}, dtable.data()});
  const auto at = [W](index row, index w) { return static_cast<std::size_t>(row * W + w); };
  for (index r = 0; r < p.size.queries; ++r) {
    for (index c = 0; c < p.size.keys; ++c) {
      const index row = p.shaw().row_of(p.site.at(r, c));
      const auto g = static_cast<double>(p.score(r, c));
      for (index w = 0; w < W; ++w) {
        expected[at(r, w)] += 0.25 * g * static_cast<double>(p.table[at(row, w)]);
        sums[at(row, w)] += 0.5 * g * static_cast<double>(p.x[at(r, w)]);
      }
    }
  }
  for (std::size_t n = 0; n < dx.size(); ++n) ASSERT_NEAR(dx[n], expected[n], near<V>(300));
  for (std::size_t n = 0; n < sums.size(); ++n) ASSERT_NEAR(dtable[n], sums[n], near<V>(3000));
  std::vector<double> again(p.table.size(), 0.25);
  detail::pull_shaw_products<V>(p.site, p.shaw(), p.x_rows(), V{0.5},
                                {tile.data(), p.size.queries, p.size.keys, kStride},
                                {{}, V{1}, again.data()});
  EXPECT_EQ(again, dtable) << "without dx";
}

template <class V>
void expect_vectors(Problem<V> p) {
  const index W = p.size.W;
  std::vector<V> tile = laid(p, TileLanes::kQueries), o(static_cast<std::size_t>(W * kStride), 1);
  const ScoreTile<const V> weights{tile.data(), kStride, TileLanes::kQueries};
  const Rows<V> to(o.data(), W, p.size.queries, kStride);
  ASSERT_TRUE(detail::shaw_vectors_fit(weights, to));
  detail::add_shaw_vectors(p.site, p.shaw(), weights, to);
  for (index r = 0; r < p.size.queries; ++r) {
    for (index w = 0; w < W; ++w) {
      double sum = 1;
      for (index c = 0; c < p.size.keys; ++c) {
        const V* row = p.shaw().rows[p.shaw().row_of(p.site.at(r, c))];
        sum += static_cast<double>(p.score(r, c)) * static_cast<double>(row[w]);
      }
      ASSERT_NEAR(to[w][r], sum, near<V>(300)) << r << " " << w;
    }
  }
}

template <class V>
void expect_definition() {
  for (const Size& size : sizes()) {
    SCOPED_TRACE(::testing::Message() << size.queries << " x " << size.keys << " at " << size.key
                                      << ", clip " << size.clip << ", W " << size.W);
    expect_products(Problem<V>{size});
    expect_pulled(Problem<V>{size});
    expect_vectors(Problem<V>{size});
  }
}

TEST(ShawTile, IsTheDefinition) {
  for_each_isa([] {
    expect_definition<float>();
    expect_definition<double>();
  });
}

TEST(ShawTile, BeyondTheClipThereIsOneSlot) {
  const Sequence sequence{.queries = 600, .keys = 600};
  const std::vector<double> values(33 * 2);
  const detail::ShawTable<double> table{Rows<const double>(values.data(), 33, 2)};
  const auto slots = [&](index query, index key) {
    return detail::ShawTile<double>({sequence, 0, query, 64, key, 128}, table).count;
  };
  EXPECT_EQ(slots(256, 0), 1);
  EXPECT_EQ(slots(143, 0), 1) << "the nearest is 16 behind";
  EXPECT_EQ(slots(142, 0), 2);
  EXPECT_EQ(slots(0, 128), 1) << "ahead";
  EXPECT_EQ(slots(128, 128), 33);
  EXPECT_EQ(detail::ShawTile<double>({sequence, 0, 256, 64, 0, 128}, table).table_row(0), 32);
}

TEST(ShawTile, OtherLayoutsAreLeftToTheDefinition) {
  std::vector<float> w(64 * 64), o(64 * 64);
  const Rows<float> whole(o.data(), 4, 20, 64), odd(o.data(), 4, 20, 21);
  EXPECT_TRUE(detail::shaw_vectors_fit<float>({w.data(), 64, TileLanes::kQueries}, whole));
  EXPECT_FALSE(detail::shaw_vectors_fit<float>({w.data(), 64, TileLanes::kKeys}, whole));
  if (current_isa() == Isa::kScalar) return;  // every row is whole
  EXPECT_FALSE(detail::shaw_vectors_fit<float>({w.data(), 64, TileLanes::kQueries}, odd));
  EXPECT_FALSE(detail::shaw_vectors_fit<float>({w.data(), 21, TileLanes::kQueries}, whole));
}

// NaN in a row of the table, and in a row of x, whose values are all 0: as if they were not there.
template <class V>
void expect_harmless(const Size& size) {
  Problem<V> clean{size};
  const index non_finite = size.order == ShawOrder::kQueryMinusKey ? 0 : 2 * size.clip;
  for (index r = 0; r < size.queries; ++r) {
    for (index c = 0; c < size.keys; ++c) {
      if (r == 3 || clean.shaw().row_of(clean.site.at(r, c)) == non_finite) clean.score(r, c) = 0;
    }
  }
  Problem<V> bad = clean;
  const V nan = std::numeric_limits<V>::quiet_NaN(), infinity = std::numeric_limits<V>::infinity();
  std::fill_n(bad.table.begin() + non_finite * size.W, size.W, infinity);
  std::fill_n(bad.x.begin() + 3 * size.W, size.W, nan);
  std::vector<std::vector<V>> dx(2, std::vector<V>(clean.x.size())),
      o(2, std::vector<V>(static_cast<std::size_t>(size.W * kStride)));
  std::vector<std::vector<double>> dtable(2, std::vector<double>(clean.table.size()));
  for (const std::size_t n : {0, 1}) {
    Problem<V>& p = n == 0 ? clean : bad;
    const std::vector<V> along = laid(p, TileLanes::kKeys), across = laid(p, TileLanes::kQueries);
    detail::pull_shaw_products<V>(p.site, p.shaw(), p.x_rows(), V{1},
                                  {along.data(), size.queries, size.keys, kStride},
                                  {{dx[n].data(), size.queries, size.W}, V{1}, dtable[n].data()});
    detail::add_shaw_vectors<V>(p.site, p.shaw(), {across.data(), kStride, TileLanes::kQueries},
                                Rows<V>(o[n].data(), size.W, size.queries, kStride));
  }
  for (std::size_t n = 0; n < dx[0].size(); ++n) ASSERT_NEAR(dx[0][n], dx[1][n], near<V>(30));
  for (std::size_t n = 0; n < dtable[0].size(); ++n) {
    ASSERT_NEAR(dtable[0][n], dtable[1][n], near<V>(300));
  }
  for (index w = 0; w < size.W; ++w) {
    for (index r = 0; r < size.queries; ++r) {
      const auto at = static_cast<std::size_t>(w * kStride + r);
      ASSERT_NEAR(o[0][at], o[1][at], near<V>(30));
    }
  }
}

TEST(ShawTile, AValueOfZeroAddsNothingWhateverItMeets) {
  for_each_isa([] {
    for (const index key : {0, 97, 110, 300}) {
      for (const ShawOrder order : {ShawOrder::kQueryMinusKey, ShawOrder::kKeyMinusQuery}) {
        expect_harmless<float>({64, 64, key, 16, 16, order});
        expect_harmless<double>({19, 37, key, 4, 7, order});
      }
    }
  });
}

// And one that is not 0 passes it on.
TEST(ShawTile, WhatIsKeptIsPassedOn) {
  for_each_isa([] {
    Problem<float> p{{20, 30, 90, 4, 5}};
    p.table[0] = NAN;
    std::vector<float> o(static_cast<std::size_t>(5 * kStride));
    const std::vector<float> across = laid(p, TileLanes::kQueries);
    detail::add_shaw_vectors<float>(p.site, p.shaw(), {across.data(), kStride, TileLanes::kQueries},
                                    Rows<float>(o.data(), 5, 20, kStride));
    EXPECT_TRUE(std::isnan(o[0])) << "of query 0, keys ahead by 4 and more have row 0";
    EXPECT_FALSE(std::isnan(o[static_cast<std::size_t>(kStride)])) << "the next column";
  });
}

}  // namespace
}  // namespace fovea::testing
