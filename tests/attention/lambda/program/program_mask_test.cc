// SPDX-License-Identifier: Apache-2.0
// Programs and lists of blocks as masks: what they say of tiles agrees with each score.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "fovea/attention/lambda/program/program_parts.h"
#include "fovea/attention/mask/blocks.h"
#include "tests/attention/support/programs.h"
#include "tests/isa.h"
#include "tests/support/throws.h"

namespace fovea::testing {
namespace {

using detail::ProgramMask;

const AttentionSizes kSizes{.B = 2, .T = 300, .S = 400, .H = 2, .G = 2, .D = 4, .Dv = 4};

struct NamedMask {
  std::string name;
  std::shared_ptr<const MaskPart> mask;
};

int at_most(Steps& s, int a, int b) { return s.op(TapeOp::kLessEqual, a, b); }

// Tables outlive the masks.
struct Masks {
  std::vector<std::int32_t> ids = std::vector<std::int32_t>(400), lengths = {150, 400};
  std::vector<NamedMask> all;

  Masks() {
    for (std::size_t n = 0; n < ids.size(); ++n) ids[n] = static_cast<std::int32_t>(n / 70);
    Steps causal;
    at_most(causal, causal.key(), causal.query());
    add("causal", causal);
    Steps window;
    const int distance = window.op(TapeOp::kSub, window.query(), window.key());
    window.op(TapeOp::kMin, at_most(window, window.op(TapeOp::kAbs, distance), window.constant(9)),
              window.op(TapeOp::kLess, window.constant(4), window.key()));
    add("window", window);
    Steps documents;
    const int q = documents.query(), k = documents.key();
    documents.op(TapeOp::kMin, at_most(documents, k, q),
                 documents.op(TapeOp::kEqual, documents.read(0, {q}), documents.read(0, {k})));
    add("documents", documents);
    Steps padding;
    padding.op(TapeOp::kLess, padding.key(), padding.read(1, {padding.batch()}));
    add("padding", padding);
    Steps either;
    const int rest = either.op(TapeOp::kModulo, either.key(), either.constant(16));
    either.op(TapeOp::kMax, either.op(TapeOp::kEqual, rest, either.head()),
              at_most(either, either.op(TapeOp::kAdd, either.query(), either.constant(200)),
                      either.key()));
    add("either", either);
    Steps nothing;
    nothing.op(TapeOp::kLess, nothing.key(), nothing.constant(0));
    add("nothing", nothing);
  }
  void add(const std::string& name, const Steps& steps) {
    ScoreProgram program(steps.all(), {table_of(ids, {400}), table_of(lengths, {2})});
    all.push_back({name, std::make_shared<const ProgramMask>(std::make_shared<const PlannedProgram>(
                             std::move(program), kSizes, std::vector<void*>(), 0x1p24))});
  }
};

void expect_ranges(const MaskPart& mask, const Sequence& sequence) {
  for (const index size : {1, 16, 64, 130}) {
    for (index begin = 0; begin + size <= sequence.queries; begin += 37) {
      const auto [first, last] = mask.key_range(sequence, 1, begin, size);
      ASSERT_TRUE(0 <= first && first <= last && last <= sequence.keys);
      for (index j = 0; j < sequence.keys; ++j) {
        if (first <= j && j < last) continue;
        for (index i = begin; i < begin + size; ++i) ASSERT_FALSE(mask.keeps({sequence, 1, i, j}));
      }
      const auto [above, below] = mask.query_range(sequence, 1, begin, size);
      ASSERT_TRUE(0 <= above && above <= below && below <= sequence.queries);
      for (index i = 0; i < sequence.queries; ++i) {
        if (above <= i && i < below) continue;
        for (index j = begin; j < begin + size; ++j) ASSERT_FALSE(mask.keeps({sequence, 1, i, j}));
      }
    }
  }
}

template <class V>
void expect_tile(const MaskPart& mask, const TileSite& site, TileLanes lanes) {
  std::vector<V> values(128 * 128, V(1));
  values[3] = std::numeric_limits<V>::quiet_NaN();
  const ScoreTile<V> tile{values.data(), 128, lanes};
  const TileKind kind = mask.classify(site);
  if (kind == TileKind::kSome) mask.apply(site, tile);
  index kept = 0;
  for (index r = 0; r < site.queries; ++r) {
    for (index c = 0; c < site.keys; ++c) {
      const bool keeps = mask.keeps(site.at(r, c));
      kept += keeps ? 1 : 0;
      const bool dropped = tile.at(r, c) == -std::numeric_limits<V>::infinity();
      ASSERT_EQ(dropped, kind == TileKind::kSome && !keeps) << r << ", " << c;
    }
  }
  ASSERT_TRUE(kind != TileKind::kNone || kept == 0);
  ASSERT_TRUE(kind != TileKind::kAll || kept == site.queries * site.keys);
}

void expect_tiles(const MaskPart& mask, const Sequence& sequence) {
  for (index query = 0; query < sequence.queries; query += 64) {
    for (index key = 0; key < sequence.keys; key += 128) {
      const TileSite site{sequence, 1,
                          query,    std::min<index>(64, sequence.queries - query),
                          key,      std::min<index>(128, sequence.keys - key)};
      expect_tile<float>(mask, site, TileLanes::kQueries);
      expect_tile<double>(mask, site, TileLanes::kKeys);
    }
  }
}

TEST(ProgramMask, SaysOfTilesWhatItKeeps) {
  const Masks masks;
  const Sequence sequence{.number = 1, .queries = kSizes.T, .keys = kSizes.S};
  for (const auto& [name, mask] : masks.all) {
    SCOPED_TRACE(name);
    expect_ranges(*mask, sequence);
    for_each_isa([&, &part = mask] { expect_tiles(*part, sequence); });
  }
}

TEST(ProgramMask, SkipsAsTheReadyMadeMaskDoes) {
  const Masks masks;
  const Call<float> call({.B = 2, .T = 300, .S = 400, .H = 2, .G = 2, .D = 4, .Dv = 4});
  const auto tiles = [&](const Mask& mask) {
    const AttentionPlan plan = attention_plan<float>(Context(1), {.mask = mask}, call.in());
    return std::pair{plan.tiles_kept, plan.tiles_masked};
  };
  EXPECT_EQ(tiles(Mask(masks.all[0].mask)), tiles(mask::Causal(Align::kTopLeft)));
  EXPECT_EQ(tiles(Mask(masks.all[2].mask)).first, 2 * 2 * (1 + 1 + 2 + 1 + 2));
  EXPECT_EQ(tiles(Mask(masks.all[5].mask)).first, 0);
}

TEST(BlocksMask, KeepsWhatItsListsSay) {
  const Masks masks;
  const Sequence sequence{.number = 1, .queries = kSizes.T, .keys = kSizes.S};
  std::vector<std::uint8_t> kinds(2 * 7 * 5);  // blocks of 48 x 96, of one batch and two heads
  for (std::size_t n = 0; n < kinds.size(); ++n)
    kinds[n] = static_cast<std::uint8_t>(n * 5 % 7 % 3);
  for (std::size_t n = 0; n < 5; ++n) kinds[35 + n] = 0;  // nothing of the first queries
  for (const auto& inside : {masks.all[0].mask, std::shared_ptr<const MaskPart>()}) {
    const mask::Blocks mask({kinds.data(), 1, 2, 7, 5, 48, 96}, inside);
    expect_ranges(mask, sequence);
    expect_tiles(mask, sequence);
    EXPECT_FALSE(mask.keeps({sequence, 1, 47, 0}));
  }
  const mask::Blocks small({kinds.data(), 1, 2, 7, 4, 48, 96}, nullptr);
  EXPECT_THROWS((small.check_shape(kSizes)), kShape, "up to 336 queries and 384 keys");
}

}  // namespace
}  // namespace fovea::testing
