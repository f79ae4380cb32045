// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include <vector>

#include "fovea/model/ngram_ids.h"
#include "tests/support/throws.h"

namespace fovea {
namespace {

std::vector<std::int32_t> rows_of(const std::vector<std::int32_t>& words,
                                  const std::vector<std::int32_t>& offsets) {
  std::vector<std::int32_t> rows(words.size() * kContextNgrams);
  hash_contexts({words.data(), static_cast<index>(words.size())},
                {offsets.data(), static_cast<index>(offsets.size())}, 1000000007,
                {rows.data(), static_cast<index>(rows.size())});
  return rows;
}

// The documented hash, in other words.
std::int32_t row(std::uint64_t kind, const std::vector<int>& words) {
  std::uint64_t h = kind << 32;
  for (const int word : words) {
    h = (h + static_cast<std::uint64_t>(word + 2)) * 0x9E3779B97F4A7C15u;
  }
  h = (h ^ (h >> 30)) * 0xBF58476D1CE4E5B9u;
  h = (h ^ (h >> 27)) * 0x94D049BB133111EBu;
  return static_cast<std::int32_t>((h ^ (h >> 31)) % 1000000007);
}

TEST(WordBatch, NgramsAreThoseAroundEachWordOfItsSentence) {
  EXPECT_THAT(rows_of({5, 6, 7}, {0, 2, 3}),
              testing::ElementsAre(row(0, {-1, 5}), row(1, {5, 6}), row(2, {-1, 5, 6}),  //
                                   row(0, {5, 6}), row(1, {6, -1}), row(2, {5, 6, -1}),
                                   row(0, {-1, 7}), row(1, {7, -1}), row(2, {-1, 7, -1})));
}

TEST(WordBatch, ThereMustBeRoomForAll) {
  std::int32_t words[] = {1}, offsets[] = {0, 1}, rows[2];
  EXPECT_THROWS(hash_contexts({words, 1}, {offsets, 2}, 5, {rows, 2}), kShape, "2 rows for 1");
}

}  // namespace
}  // namespace fovea
