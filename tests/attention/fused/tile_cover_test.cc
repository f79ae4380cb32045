// SPDX-License-Identifier: Apache-2.0
#include "fovea/attention/fused/tile_cover.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "fovea/attention/attention.h"

namespace fovea::detail {
namespace {

// How often each score of a tile is covered, by rows, by lanes, or by the shared rows and the
// pieces beyond them (as by lanes, if no rows are shared), or is of the rest.
struct Cover {
  std::vector<char> by_rows, by_lanes, by_pieces, rest;
};

struct Piece {
  Span lanes, rows;
  bool operator==(const Piece&) const = default;
};

std::vector<Piece> pieces_of(const TileCover& parts) {
  std::vector<Piece> pieces;
  parts.for_each_beyond([&](Span lanes, Span rows) { pieces.push_back({lanes, rows}); });
  return pieces;
}

Cover cover(const TileCover& parts, index rows, index stride) {
  const auto size = static_cast<std::size_t>(rows * stride);
  const std::vector<char> none(size);
  Cover c{none, none, none, none};
  const auto mark = [&](std::vector<char>& marks, Span of_rows, Span lanes) {
    for (index r = of_rows.begin; r < of_rows.end; ++r)
      for (index l = lanes.begin; l < lanes.end; ++l)
        ++marks[static_cast<std::size_t>(r * stride + l)];
  };
  parts.for_each_rows([&](Span of_rows, Span lanes) { mark(c.by_rows, of_rows, lanes); });
  parts.for_each_lanes([&](Span lanes, Span of_rows) { mark(c.by_lanes, of_rows, lanes); });
  parts.for_each_rest([&](Span of_rows, Span lanes) { mark(c.rest, of_rows, lanes); });
  c.by_pieces = c.by_lanes;
  const Span shared = parts.shared_rows();
  if (shared.begin == shared.end) return c;
  c.by_pieces = none;
  mark(c.by_pieces, shared, {0, stride});
  std::vector<index> next(static_cast<std::size_t>(stride), shared.end);
  for (const Piece& piece : pieces_of(parts)) {
    EXPECT_LT(piece.rows.begin, piece.rows.end);
    for (index l = piece.lanes.begin; l < piece.lanes.end; ++l) {
      EXPECT_EQ(std::exchange(next[static_cast<std::size_t>(l)], piece.rows.end), piece.rows.begin);
    }
    mark(c.by_pieces, piece.rows, piece.lanes);
  }
  return c;
}

index total(const std::vector<char>& marks) {
  index sum = 0;
  for (const char mark : marks) sum += mark;
  return sum;
}

TEST(TileCover, CausalDiagonalIsTenStepsOfSixteen) {
  const Sequence sequence{.queries = 128, .keys = 128};
  for (const TileLanes lanes : {TileLanes::kQueries, TileLanes::kKeys}) {
    const TileCover parts(mask::Causal(), {sequence, 0, 64, 64, 64, 64}, lanes, 64);
    const Cover c = cover(parts, 64, 64);
    EXPECT_EQ(total(c.by_rows), 10 * 256);
    EXPECT_EQ(total(c.by_lanes), 10 * 256);
    EXPECT_EQ(total(c.by_pieces), 10 * 256);
    EXPECT_EQ(total(c.rest), 6 * 256);
  }
}

TEST(TileCover, PiecesOfADiagonalAreAsWideAsTheyCanBe) {
  const Sequence sequence{.queries = 128, .keys = 128};
  const TileSite site{sequence, 0, 64, 64, 64, 64};
  const TileCover diagonal(mask::Causal(), site, TileLanes::kQueries, 64);
  EXPECT_EQ(diagonal.shared_rows(), (Span{0, 16}));
  EXPECT_EQ(pieces_of(diagonal),
            (std::vector<Piece>{{{16, 32}, {16, 32}}, {{32, 64}, {16, 48}}, {{48, 64}, {48, 64}}}));
  const TileCover three(mask::Causal(), site, TileLanes::kQueries, 48);
  EXPECT_EQ(pieces_of(three), (std::vector<Piece>{{{16, 32}, {16, 32}}, {{32, 48}, {16, 48}}}));
  EXPECT_EQ(pieces_of(TileCover(100, 64)), std::vector<Piece>());
}

TEST(TileCover, WholeTileIsOnePart) {
  index calls = 0;
  TileCover(kRowBlock, 64).for_each_rows([&](Span rows, Span lanes) {
    ++calls;
    EXPECT_EQ(rows, (Span{0, kRowBlock}));
    EXPECT_EQ(lanes, (Span{0, 64}));
  });
  EXPECT_EQ(calls, 1);
  EXPECT_EQ(total(cover(TileCover(kRowBlock, 64), kRowBlock, 64).rest), 0);
}

TEST(TileCover, FillsOnlyTheLanesOfTheRows) {
  std::vector<float> tile(3 * 8, 1.0f);
  fill_lanes(tile.data(), 8, {1, 3}, {2, 5}, 0.0f);
  for (std::size_t n = 0; n < tile.size(); ++n) {
    const bool inside = n / 8 >= 1 && n % 8 >= 2 && n % 8 < 5;
    EXPECT_EQ(tile[n], inside ? 0.0f : 1.0f) << n;
  }
}

TEST(TileCover, SharedRowsAreThoseOfAllLanes) {
  const Sequence sequence{.queries = 128, .keys = 128};
  const auto shared = [&](const Mask& mask, TileSite site) {
    return TileCover(mask, site, TileLanes::kQueries, 64).shared_rows();
  };
  // Queries 64 .. 127 of a causal mask all see keys 0 .. 63, and the first step of them 64 .. 79.
  EXPECT_EQ(shared(mask::Causal(), {sequence, 0, 64, 64, 0, 128}), (Span{0, 80}));
  EXPECT_EQ(shared(mask::Causal(), {sequence, 0, 0, 64, 64, 64}), Span());
  EXPECT_EQ(shared(mask::Window(8, 8), {sequence, 0, 0, 64, 0, 128}), Span());
  EXPECT_EQ(TileCover(100, 64).shared_rows(), (Span{0, 100}));
}

void expect_kept_once(const Mask& mask, const TileSite& site, index stride) {
  const Cover c = cover(TileCover(mask, site, TileLanes::kQueries, stride), site.keys, stride);
  ASSERT_EQ(c.by_pieces, c.by_lanes);
  for (index r = 0; r < site.queries; ++r) {
    for (index k = 0; k < site.keys; ++k) {
      const auto at = static_cast<std::size_t>(k * stride + r);
      ASSERT_EQ(c.by_rows[at] + c.rest[at], 1);
      ASSERT_LE(c.by_lanes[at], 1);
      if (!mask.keeps(site.at(r, k))) continue;
      ASSERT_EQ(c.by_rows[at], 1) << mask.name() << ' ' << site.query + r << ' ' << site.key + k;
      ASSERT_EQ(c.by_lanes[at], 1) << mask.name() << ' ' << site.query + r << ' ' << site.key + k;
    }
  }
}

// Wherever the tile lies, no kept score is left out, and none is computed twice.
TEST(TileCover, HoldEveryKeptScoreOnce) {
  const Sequence sequence{.queries = 150, .keys = 170};
  const Mask masks[] = {mask::Causal(), mask::Window(20, 0), mask::Window(5, 9),
                        mask::Causal() & mask::Window(33, 0)};
  for (const Mask& mask : masks) {
    for (index query = 0; query < 150; query += 37) {
      for (index key = 0; key < 170; key += 41) {
        const TileSite site{sequence, 0,
                            query,    std::min<index>(64, 150 - query),
                            key,      std::min<index>(50, 170 - key)};
        for (const index stride : {(site.queries + 3) / 4 * 4, index{64}}) {
          expect_kept_once(mask, site, stride);
          if (testing::Test::HasFatalFailure()) return;
        }
      }
    }
  }
}

}  // namespace
}  // namespace fovea::detail
