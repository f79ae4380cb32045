// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include "fovea/attention/fused/tile_cover.h"
#include "tests/attention/support/table.h"

namespace fovea::testing {
namespace {

// How much of a tile is kept, by the definition.
char kind_of(const Mask& mask, const Sequence& sequence, index query, index key) {
  const index queries = std::min(kLaneTile, sequence.queries - query);
  const index keys = std::min(kRowBlock, sequence.keys - key);
  index kept = 0;
  for (index i = query; i < query + queries; ++i) {
    for (index j = key; j < key + keys; ++j) kept += mask.keeps({sequence, 1, i, j}) ? 1 : 0;
  }
  return kept == 0 ? '.' : kept == queries * keys ? '#' : '/';
}

// A part may compute or mask a tile without need, and never leave one out.
void expect_picture(const Mask& mask, const Sequence& sequence, bool exact) {
  SCOPED_TRACE(mask.name());
  const std::vector<std::string> lines = detail::picture_of_tiles(mask, sequence, 1);
  ASSERT_EQ(lines.size(), static_cast<std::size_t>((sequence.queries + 63) / 64));
  for (std::size_t row = 0; row < lines.size(); ++row) {
    ASSERT_EQ(lines[row].size(), static_cast<std::size_t>((sequence.keys + 127) / 128));
    for (std::size_t column = 0; column < lines[row].size(); ++column) {
      const char kind =
          kind_of(mask, sequence, static_cast<index>(row) * 64, static_cast<index>(column) * 128);
      const char drawn = lines[row][column];
      EXPECT_TRUE(drawn == kind || (!exact && drawn == '/')) << row << ", " << column;
    }
  }
}

TEST(KeptTiles, AreThoseOfTheDefinition) {
  for (const auto& [queries, keys] : {std::pair<index, index>{384, 640}, {130, 300}, {300, 70}}) {
    for (const Align align : {Align::kBottomRight, Align::kTopLeft}) {
      const Sequence sequence{.queries = queries, .keys = keys, .align = align};
      expect_picture(mask::All(), sequence, true);
      expect_picture(mask::Causal(align), sequence, true);
      expect_picture(mask::Window(96, 0), sequence, true);
      expect_picture(mask::Strided(9), sequence, false);
      expect_picture(mask::dilated(3, 40, 20), sequence, false);
    }
  }
}

TEST(KeptTiles, OfEveryMask) {
  const TableData data(1, 300);
  for (const MaskRow& row : mask_table()) {
    Sequence sequence{.queries = 300, .keys = 300};
    const Mask mask = row.make(data);
    mask.limit(sequence);
    expect_picture(mask, sequence, false);
  }
}

TEST(KeptTiles, ArePictures) {
  using ::testing::ElementsAre;
  const Sequence sequence{.queries = 384, .keys = 640};
  EXPECT_THAT(detail::picture_of_tiles(mask::Causal(), sequence, 0),
              ElementsAre("##/..", "##/..", "###/.", "###/.", "####/", "####/"));
  EXPECT_THAT(detail::picture_of_tiles({}, {.queries = 65, .keys = 0}, 0), ElementsAre("", ""));
  EXPECT_THAT(detail::picture_of_tiles({}, {.queries = 0, .keys = 5}, 0), ElementsAre());
}

}  // namespace
}  // namespace fovea::testing
