// SPDX-License-Identifier: Apache-2.0
// Every mask against its own definition: what it says of tiles and ranges is what keeps() says.
#include "fovea/attention/mask/mask.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <limits>
#include <string>
#include <vector>

#include "fovea/attention/attention.h"
#include "fovea/base/random.h"
#include "tests/attention/support/table.h"
#include "tests/isa.h"
#include "tests/support/throws.h"

namespace fovea::testing {
namespace {

using ::testing::ElementsAre;

constexpr index kMost = TableData::kMost;

// The masks of the table, more windows, and some together.
std::vector<Mask> every_mask(const TableData& tables) {
  std::vector<Mask> masks;
  for (const MaskRow& row : mask_table()) masks.push_back(row.make(tables));
  for (const Align align : {Align::kBottomRight, Align::kTopLeft}) {
    masks.push_back(mask::Causal(align) & mask::Window(17, 3));
    masks.push_back(mask::Causal(align) & mask::Keep(tables.matrix()));
  }
  for (const index left :
       {kOpen, index{0}, index{1}, index{20}, std::numeric_limits<index>::max()}) {
    for (const index right : {kOpen, index{0}, index{9}, std::numeric_limits<index>::max()}) {
      masks.push_back(mask::Window(left, right));
    }
  }
  masks.push_back(mask::Past());
  masks.push_back(mask::Past() & mask::Window(5, kOpen));
  for (const index rate : {1, 2, 64, 1000}) {
    masks.push_back(mask::Dilated(rate));
    masks.push_back(mask::dilated(rate, 2, kOpen));
    masks.push_back(mask::Strided(rate) & mask::Causal());
  }
  masks.push_back(mask::dilated(7, std::numeric_limits<index>::max(), 0));
  masks.push_back(mask::lengths(view_of(tables.lengths)));
  masks.push_back(mask::KeyLengths(view_of(tables.lengths)) & mask::Causal());
  return masks;
}

index between(Random& random, index low, index high) { return low + random.below(high - low + 1); }

// Any sequence, and any tile of it that is not empty.
template <class F>
void for_each_tile(F&& f) {
  const TableData tables;
#ifdef FOVEA_FEW_PROBLEMS
  constexpr int kTiles = 60;
#else
  constexpr int kTiles = 600;
#endif
  for (const Mask& mask : every_mask(tables)) {
    SCOPED_TRACE(mask.name());
    Random random(1, RandomUse::kTest);
    for (int n = 0; n < kTiles && !::testing::Test::HasFailure(); ++n) {
      Sequence sequence{.batch = random.below(3),
                        .queries = between(random, 1, kMost),
                        .keys = between(random, 1, kMost)};
      mask.limit(sequence);
      if (sequence.queries == 0 || sequence.keys == 0) continue;
      const index query = random.below(sequence.queries), key = random.below(sequence.keys);
      f(mask,
        TileSite{sequence, random.below(2), query, between(random, 1, sequence.queries - query),
                 key, between(random, 1, sequence.keys - key)});
    }
  }
}

TEST(Mask, ClassifyAgreesWithKeeps) {
  for_each_tile([](const Mask& mask, const TileSite& site) {
    index kept = 0;
    for (index r = 0; r < site.queries; ++r) {
      for (index c = 0; c < site.keys; ++c) kept += mask.keeps(site.at(r, c)) ? 1 : 0;
    }
    const TileKind kind = mask.classify(site);
    EXPECT_TRUE(kind != TileKind::kNone || kept == 0);
    EXPECT_TRUE(kind != TileKind::kAll || kept == site.queries * site.keys);
  });
}

// These know exactly: a tile that they keep none or all of is never looked at score by score.
TEST(Mask, BandsAndDistancesClassifyExactly) {
  for_each_tile([](const Mask& mask, const TileSite& site) {
    if (mask.parts().size() != 1) return;
    const MaskPart* const part = mask.parts()[0].get();
    const bool is_exact = dynamic_cast<const detail::BandMask*>(part) != nullptr ||
                          dynamic_cast<const detail::DistanceMask*>(part) != nullptr ||
                          dynamic_cast<const mask::NotPadding*>(part) != nullptr;
    if (!is_exact || mask.classify(site) != TileKind::kSome) return;
    index kept = 0;
    for (index r = 0; r < site.queries; ++r) {
      for (index c = 0; c < site.keys; ++c) kept += mask.keeps(site.at(r, c)) ? 1 : 0;
    }
    EXPECT_LT(kept, site.queries * site.keys);
    EXPECT_GT(kept, 0);
  });
}

TEST(Mask, RangesHoldEverythingThatIsKept) {
  for_each_tile([](const Mask& mask, const TileSite& site) {
    const Sequence& sequence = site.sequence;
    const auto [first_key, last_key] =
        mask.key_range(sequence, site.head, site.query, site.queries);
    EXPECT_GE(first_key, 0);
    EXPECT_LE(last_key, sequence.keys);
    const auto [first_query, last_query] =
        mask.query_range(sequence, site.head, site.key, site.keys);
    EXPECT_GE(first_query, 0);
    EXPECT_LE(last_query, sequence.queries);
    for (index r = 0; r < site.queries; ++r) {
      for (index j = 0; j < sequence.keys; ++j) {
        const bool outside = j < first_key || j >= last_key;
        EXPECT_FALSE(outside && mask.keeps({sequence, site.head, site.query + r, j}));
      }
    }
    for (index c = 0; c < site.keys; ++c) {
      for (index i = 0; i < sequence.queries; ++i) {
        const bool outside = i < first_query || i >= last_query;
        EXPECT_FALSE(outside && mask.keeps({sequence, site.head, i, site.key + c}));
      }
    }
  });
}

TEST(Mask, KeptKeysAreThoseThatItKeeps) {
  for_each_tile([](const Mask& mask, const TileSite& site) {
    const Sequence& sequence = site.sequence;
    for (index r = 0; r < site.queries; ++r) {
      const index i = site.query + r;
      index kept = 0;
      for (index j = 0; j < sequence.keys; ++j) {
        kept += mask.keeps({sequence, site.head, i, j}) ? 1 : 0;
      }
      ASSERT_EQ(mask.kept_keys(sequence, site.head, i), kept) << "query " << i;
    }
  });
}

// Lengths count also where they did not shorten the sequence.
TEST(Mask, KeptKeysOfASequenceThatIsNotCut) {
  const std::vector<std::int32_t> lengths = {3};
  const Sequence sequence{.queries = 5, .keys = 7};
  EXPECT_EQ(Mask(mask::KeyLengths(view_of(lengths))).kept_keys(sequence, 0, 4), 3);
  EXPECT_EQ(Mask(mask::QueryLengths(view_of(lengths))).kept_keys(sequence, 0, 2), 7);
  EXPECT_EQ(Mask(mask::QueryLengths(view_of(lengths))).kept_keys(sequence, 0, 3), 0);
}

TEST(Mask, BandsAndLengthsNeedNoCounting) {
  const TableData tables;
  const std::vector<std::string> ranges = {"causal",       "causal(top-left)", "window",
                                           "head_windows", "key_lengths",      "query_lengths"};
  for (const MaskRow& row : mask_table()) {
    const Mask mask = row.make(tables);
    const bool expected = std::find(ranges.begin(), ranges.end(), row.name) != ranges.end();
    if (mask.parts().size() != 1) continue;
    EXPECT_EQ(mask.parts()[0]->keeps_key_range(), expected) << row.name;
  }
}

// Keeps the last 40 keys of the last 40 queries, and says so of many rows only: of few it says that
// they may keep anything.
class Hasty final : public MaskPart {
 public:
  bool keeps(const ScoreSite& site) const override {
    return site.j >= site.sequence.keys - 40 && site.i >= site.sequence.queries - 40;
  }
  std::pair<index, index> key_range(const Sequence& sequence, index, index,
                                    index queries) const override {
    return {queries > 64 ? sequence.keys - 40 : -5, sequence.keys + 5};
  }
  std::pair<index, index> query_range(const Sequence& sequence, index, index,
                                      index keys) const override {
    return {keys > 64 ? sequence.queries - 40 : -5, sequence.queries + 5};
  }
  std::string name() const override { return "hasty"; }
};

// What a mask says of a tile is not trusted beyond what it said of all that the tile is a part of.
TEST(Mask, RangesOfTilesStayWithinThoseOfTheWhole) {
  for_each_isa([] {
    Call<float> fused({.T = 700, .S = 300, .H = 2, .G = 2, .D = 8, .Dv = 8}), exact = fused;
    fused.run({.mask = Hasty()});
    exact.run({.mask = Hasty()}, Method::kReference);
    EXPECT_LE(difference(fused.o, exact.o), 1e-5);
    EXPECT_LE(difference(fused.dq, exact.dq), 1e-5);
    EXPECT_LE(difference(fused.dk, exact.dk), 1e-5);
    EXPECT_LE(difference(fused.dv, exact.dv), 1e-5);
  });
}

template <class V>
void expect_apply(const Mask& mask, const TileSite& site, TileLanes lanes) {
  const bool across = lanes == TileLanes::kQueries;
  const index rows = across ? site.keys : site.queries, width = across ? site.queries : site.keys;
  const index stride = width + 3;
  std::vector<V> values(static_cast<std::size_t>(rows * stride), V{7});
  const ScoreTile<V> tile{values.data(), stride, lanes};
  mask.apply(site, tile);
  for (index r = 0; r < site.queries; ++r) {
    for (index c = 0; c < site.keys; ++c) {
      const bool kept = mask.keeps(site.at(r, c));
      EXPECT_EQ(tile.at(r, c), kept ? V{7} : -std::numeric_limits<V>::infinity());
    }
  }
  for (index n = 0; n < rows * stride; ++n) {
    EXPECT_TRUE(n % stride < width || values[static_cast<std::size_t>(n)] == V{7})
        << "beyond a row";
  }
}

TEST(Mask, ApplyIsTheDefinitionInBothLayouts) {
  for_each_tile([](const Mask& mask, const TileSite& site) {
    if (mask.classify(site) == TileKind::kNone) return;  // such a tile is never made
    for (const TileLanes lanes : {TileLanes::kQueries, TileLanes::kKeys}) {
      expect_apply<float>(mask, site, lanes);
      expect_apply<double>(mask, site, lanes);
    }
  });
}

TEST(Mask, SaysWhatItIs) {
  const std::int32_t length = 3;
  const std::uint8_t one = 1;
  const auto matrix = ScoreView<const std::uint8_t>::contiguous(&one, 1, 1, 1, 1);
  EXPECT_EQ(Mask().name(), "all");
  EXPECT_EQ((mask::Causal() & mask::Window(64, 0)).name(), "causal & window(64, 0)");
  EXPECT_EQ(Mask(mask::Causal(Align::kTopLeft)).name(), "causal(top-left)");
  EXPECT_EQ(mask::lengths({&length, 1}).name(), "query_lengths & key_lengths");
  EXPECT_EQ((mask::Keep(matrix) & mask::Drop(matrix)).name(), "keep & drop");
  const mask::Where named([](const ScoreSite&) { return true; }, {}, "everything");
  EXPECT_EQ(Mask(named).name(), "everything");
}

// The keys that each mask keeps of 8, by hand, for query 4 at position 4.
TEST(Mask, KeepsWhatItsNameSays) {
  const Sequence sequence{.queries = 8, .keys = 8};
  const std::vector<std::int32_t> segments = {7, 7, -1, -1, 7, 2, 2, 7}, bounds = {0, 1, -1, 0};
  const std::vector<std::int32_t> ids = {5, 9, 9, 0, 3, 9, 4, 9};
  const Rows<const std::int32_t> places(segments.data(), 1, 8);
  const auto kept = [&](const Mask& mask, index head = 0) {
    std::vector<index> keys;
    for (index j = 0; j < 8; ++j) {
      if (mask.keeps({sequence, head, 4, j})) keys.push_back(j);
    }
    return keys;
  };
  const Rows<const std::int32_t> windows(bounds.data(), 2, 2);
  EXPECT_THAT(kept(mask::HeadWindows(windows), 0), ElementsAre(4, 5));
  EXPECT_THAT(kept(mask::HeadWindows(windows), 1), ElementsAre(0, 1, 2, 3, 4));
  EXPECT_THAT(kept(mask::Past()), ElementsAre(0, 1, 2, 3));
  EXPECT_THAT(kept(mask::Dilated(3)), ElementsAre(1, 4, 7));
  EXPECT_THAT(kept(mask::dilated(2, 1, kOpen)), ElementsAre(2, 4, 6));
  EXPECT_THAT(kept(mask::dilated(2, kOpen, 0)), ElementsAre(0, 2, 4));
  EXPECT_THAT(kept(mask::Strided(2)), ElementsAre(0, 2, 3, 4, 5, 6));
  EXPECT_THAT(kept(mask::Strided(4)), ElementsAre(0, 1, 2, 3, 4, 5, 6, 7));
  EXPECT_THAT(kept(mask::Segments(places, places)), ElementsAre(0, 1, 4, 7));
  EXPECT_THAT(kept(mask::NotPadding({ids.data(), 1, 8}, 9)), ElementsAre(0, 3, 4, 6));
}

TEST(Mask, LengthsOfIds) {
  const std::vector<std::int32_t> ids = {4, 5, 0, 0, 1, 2, 3, 4, 0, 0, 0, 0};
  EXPECT_THAT(mask::lengths_of({ids.data(), 3, 4}), ElementsAre(2, 4, 0));
  EXPECT_THAT(mask::lengths_of({ids.data(), 1, 4}, 9), ElementsAre(4));
  EXPECT_THROWS(mask::lengths_of({ids.data(), 1, 12}), kShape,
                "ids[0] has padding (0) at 2 and a token behind it, at 4");
}

TEST(Mask, RatesAreChecked) {
  EXPECT_THROWS(mask::Dilated(0), kShape, "dilated: the rate must be at least 1; got 0");
  EXPECT_THROWS(mask::Strided(-3), kShape, "got -3");
  EXPECT_THROWS(mask::dilated(2, -2, 0), kShape, "left -2");
}

TEST(Mask, NumbersMustFitTheCall) {
  const TableData tables;
  const AttentionSizes sizes{.B = 3, .T = 90, .S = 90, .H = 2, .G = 1, .D = 4, .Dv = 4};
  for (const MaskRow& row : mask_table()) {
    const Mask mask = row.make(tables);
    for (const auto& part : mask.parts()) EXPECT_NO_THROW(part->check_shape(sizes)) << row.name;
  }
  const auto numbers = tables.numbers(tables.ids);
  AttentionSizes longer = sizes;
  longer.S = 91;
  EXPECT_THROWS(mask::Segments(numbers, numbers).check_shape(longer), kShape,
                "key segments must be [B=3, S=91]; they are [3, 90]");
  longer.T = 91;
  EXPECT_THROWS(mask::Segments(numbers, numbers).check_shape(longer), kShape, "query segments");
  EXPECT_THROWS(mask::NotPadding(numbers).check_shape(longer), kShape, "ids must be [B=3, S=91]");
  const std::vector<std::int32_t> bounds = {1, -2, 3, 4};
  const mask::HeadWindows windows(Rows<const std::int32_t>(bounds.data(), 2, 2));
  EXPECT_THROWS(windows.check_shape(sizes), kShape, "windows[0]: a bound must be -1");
  longer.H = 4;
  EXPECT_THROWS(windows.check_shape(longer), kShape, "windows must be [H=4, 2]; they are [2, 2]");
}

TEST(Mask, BoundsOfAWindowAreChecked) {
  EXPECT_THROWS(mask::Window(-2, 0), kShape, "left -2");
  EXPECT_THROWS(mask::Window(0, -7), kShape, "right -7");
}

// A bare array of booleans does not say whether it keeps or drops.
static_assert(!std::is_convertible_v<bool*, Mask>);
static_assert(!std::is_convertible_v<const bool*, Mask>);
static_assert(!std::is_convertible_v<std::vector<bool>, Mask>);
static_assert(!std::is_convertible_v<ScoreView<const std::uint8_t>, Mask>);
static_assert(!std::is_convertible_v<ScoreView<const bool>, Mask>);
static_assert(!std::is_constructible_v<Mask, const bool*>);
static_assert(!std::is_constructible_v<mask::Keep, const bool*>);
static_assert(std::is_convertible_v<mask::Keep, Mask> && std::is_convertible_v<mask::Drop, Mask>);
template <class M>
concept IsAMask = requires(M mask) {
  Attention<float>{.mask = mask};
};
static_assert(IsAMask<mask::Causal> && IsAMask<mask::Keep> && !IsAMask<bool*>);

}  // namespace
}  // namespace fovea::testing
