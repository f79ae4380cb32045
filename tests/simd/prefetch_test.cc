// SPDX-License-Identifier: Apache-2.0
#include "fovea/simd/prefetch.h"

#include <gtest/gtest.h>

#include <vector>

namespace fovea {
namespace {

index lines_of(Prefetch& prefetch) {
  index lines = 0;
  for (int now = prefetch.step(); now > 0; now = prefetch.step()) lines += now;
  return lines;
}

TEST(Prefetch, AsksForEveryLineOnce) {
  std::vector<float> values(1000);
  Prefetch prefetch;
  EXPECT_EQ(prefetch.step(), 0);
  prefetch.add(Rows<float>(values.data(), 10, 32, 100));       // 128 bytes: 2 lines each
  prefetch.add(Rows<const float>(values.data(), 3, 17, 100));  // 68 bytes: 2 lines
  EXPECT_EQ(lines_of(prefetch), 26);
  EXPECT_EQ(prefetch.step(), 0);
  prefetch.add(Rows<float>(values.data(), 1, 1));
  EXPECT_EQ(lines_of(prefetch), 1);
}

// In the middle of a row, at the beginning of the ring, and where it is full.
TEST(Prefetch, WhatIsWantedSoonLeavesNothingOut) {
  std::vector<float> values(1000);
  Prefetch prefetch;
  prefetch.add(Rows<float>(values.data(), 2, 320));  // 20 lines each
  EXPECT_EQ(prefetch.step(), 16);
  prefetch.add_soon(Rows<float>(values.data(), 3, 16, 100));
  prefetch.add_soon(Rows<const float>(values.data(), 2, 32, 100));
  EXPECT_EQ(lines_of(prefetch), 40 - 16 + 3 + 4);
  for (index n = 0; n < 2 * Prefetch::kMostPieces; ++n)
    prefetch.add_soon(Rows<float>(values.data(), 1, 1));
  prefetch.add(Rows<float>(values.data(), 1, 1));
  EXPECT_EQ(lines_of(prefetch), Prefetch::kMostPieces);
  prefetch.add_soon(Rows<float>());
  EXPECT_EQ(prefetch.step(), 0);
}

TEST(Prefetch, LeavesOutWhatIsNotThere) {
  Prefetch prefetch;
  prefetch.add(Rows<double>(nullptr, 0, 8));
  prefetch.add(Rows<double>(nullptr, 8, 0));
  prefetch.add(Rows<double>());
  EXPECT_EQ(prefetch.step(), 0);
}

TEST(Prefetch, LeavesOutWhatIsTooMuch) {
  std::vector<float> values(512 * 64);
  Prefetch prefetch;
  prefetch.add(Rows<float>(values.data(), 512, 64));
  EXPECT_EQ(lines_of(prefetch), Prefetch::kMostBytes / 64);
  prefetch.add(Rows<float>(values.data(), 512, 64, 0));  // the same row
  EXPECT_EQ(lines_of(prefetch), 4);
  for (index n = 0; n < 2 * Prefetch::kMostPieces; ++n)
    prefetch.add(Rows<float>(values.data(), 1, 1));
  EXPECT_EQ(lines_of(prefetch), Prefetch::kMostPieces);
}

// The offsets in bytes from `first` of the lines that products of `asks` steps ask for. The last of
// a column is asked for after the product that came to it.
std::vector<index> lines_of_products(Prefetch& prefetch, const std::vector<int>& asks,
                                     const float* first) {
  const std::byte nothing = {};
  std::vector<index> lines;
  for (const int count : asks) {
    Prefetch::Column column = prefetch.column(&nothing);
    for (int i = 0; i < count; ++i) {
      if (column.next != &nothing)
        lines.push_back(column.next - reinterpret_cast<const std::byte*>(first));
      column.ask();
    }
    prefetch.continue_at(column);
  }
  return lines;
}

TEST(Prefetch, GoesDownColumnsOfLines) {
  std::vector<float> values(1000);
  Prefetch prefetch;
  prefetch.add(Rows<float>(values.data(), 3, 32, 100));
  prefetch.add(Rows<const float>(values.data() + 400, 2, 16, 16));
  EXPECT_EQ(lines_of_products(prefetch, {1, 1, 2, 5, 1, 3}, values.data()),
            (std::vector<index>{0, 400, 64, 464, 1600, 1664, 1664, 1664, 1664}));
  EXPECT_EQ(prefetch.step(), 0);
}

// Also where no product has enough steps to ask.
TEST(Prefetch, EachProductAsksForALine) {
  std::vector<float> values(1000);
  Prefetch prefetch;
  prefetch.add(Rows<float>(values.data(), 3, 32, 100));
  EXPECT_TRUE(lines_of_products(prefetch, {0, 0, 0, 0, 0}, values.data()).empty());
  EXPECT_EQ(lines_of(prefetch), 1);
}

// The end of a column may be asked for again; nothing is left out.
TEST(Prefetch, ColumnsAndStepsShareTheQueue) {
  std::vector<float> values(1000);
  Prefetch prefetch;
  prefetch.add(Rows<float>(values.data(), 20, 32, 32));
  EXPECT_EQ(lines_of_products(prefetch, {3}, values.data()), (std::vector<index>{0, 128, 256}));
  EXPECT_EQ(prefetch.step(), 16);
  EXPECT_EQ(lines_of_products(prefetch, {1, 1}, values.data()), (std::vector<index>{19 * 128, 64}));
  EXPECT_EQ(lines_of(prefetch), 19);
}

// The offset in bytes from `first` of each line that is asked for.
std::vector<index> lines_ahead(LinesAhead ahead, const float* first, int count) {
  std::vector<index> lines;
  for (int i = 0; i < count; ++i) {
    LinesAhead::Row row = ahead.row();
    lines.push_back(row.next - reinterpret_cast<const std::byte*>(first));
    ahead.ask(row);
    ahead.continue_at(row);
  }
  return lines;
}

TEST(LinesAhead, AsksRowAfterRowAndThenAgain) {
  std::vector<float> values(400);
  const Rows<const float> apart(values.data(), 3, 17, 100), near(values.data(), 2, 32);
  const float* const first = values.data();
  EXPECT_EQ(lines_ahead(LinesAhead(apart), first, 8),
            (std::vector<index>{0, 64, 400, 464, 800, 864, 0, 64}));
  EXPECT_EQ(lines_ahead(LinesAhead(near), first, 5), (std::vector<index>{0, 64, 128, 192, 0}));
}

TEST(LinesAhead, WithinARowGoesOnWithTheNextOneLater) {
  std::vector<float> values(400);
  const auto* const first = reinterpret_cast<const std::byte*>(values.data());
  LinesAhead ahead(Rows<const float>(values.data(), 2, 17, 100));
  std::vector<index> lines;
  for (const int count : {1, 1, 3, 2}) {
    LinesAhead::Row row = ahead.row();
    lines.push_back(row.next - first);
    for (int i = 0; i < count; ++i) LinesAhead::ask_in_row(row);
    EXPECT_LE(row.next, row.end);
    ahead.continue_at(row);
  }
  lines.push_back(ahead.row().next - first);
  EXPECT_EQ(lines, (std::vector<index>{0, 64, 400, 0, 400}));
}

TEST(LinesAhead, AsksForPiecesInTurns) {
  std::vector<float> values(400);
  const float* const first = values.data();
  const LinesAhead apart(Rows<const float>(first, 2, 16, 100)), none;
  const LinesAhead near(Rows<const float>(first + 200, 1, 32));
  const std::vector<index> both{0, 400, 800, 864, 0, 400, 800}, one{0, 400, 0, 400};
  EXPECT_EQ(lines_ahead(apart.then(near), first, 7), both);
  EXPECT_EQ(lines_ahead(apart.then(none), first, 4), one);
  EXPECT_EQ(lines_ahead(none.then(apart), first, 4), one);
  EXPECT_TRUE(none.then(none).is_empty());
  const LinesAhead third(Rows<const float>(first + 300, 1, 1));
  const std::vector<index> three{0, 400, 800, 864, 1200, 0, 400, 800, 864, 1200};
  EXPECT_EQ(lines_ahead(apart.then(near).then(third), first, 10), three);
  EXPECT_EQ(lines_ahead(apart.then(near.then(third)), first, 10), three);
  EXPECT_EQ(lines_ahead(apart.then(none).then(near), first, 7), both);
}

TEST(LinesAhead, OfNothingIsEmpty) {
  float value = 0;
  EXPECT_TRUE(LinesAhead().is_empty());
  EXPECT_TRUE(LinesAhead(Rows<const float>()).is_empty());
  EXPECT_TRUE(LinesAhead(Rows<float>(&value, 1, 0)).is_empty());
  EXPECT_FALSE(LinesAhead(Rows<float>(&value, 1, 1)).is_empty());
}

}  // namespace
}  // namespace fovea
