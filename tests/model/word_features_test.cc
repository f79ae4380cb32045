// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include <algorithm>
#include <set>
#include <vector>

#include "fovea/model/ngram_ids.h"
#include "fovea/model/tagger.h"
#include "fovea/model/text_batch.h"
#include "tests/model/tagger_support.h"
#include "tests/support/throws.h"

namespace fovea {
namespace {

constexpr index kBuckets = 1000000007;

// The documented hash, in other words.
std::int32_t row(std::uint64_t kind, const std::vector<int>& ids) {
  std::uint64_t h = kind << 32;
  for (const int id : ids) h = (h + static_cast<std::uint64_t>(id + 2)) * 0x9E3779B97F4A7C15u;
  h = (h ^ (h >> 30)) * 0xBF58476D1CE4E5B9u;
  h = (h ^ (h >> 27)) * 0x94D049BB133111EBu;
  return static_cast<std::int32_t>(1 + (h ^ (h >> 31)) % (kBuckets - 1));
}

struct Hashed {
  std::vector<std::int32_t> ids, offsets;

  std::vector<std::int32_t> of(std::size_t w) const {
    return {ids.begin() + offsets[w], ids.begin() + offsets[w + 1]};
  }
};

Hashed hash(const WordRows& rows, const FeatureOptions& options, TapeMode mode = TapeMode::kTrain) {
  Tape tape(Context(1), mode);
  const PackedRows sentences = lay_out_texts(
      tape, {.ids = rows.words, .offsets = rows.offsets, .samples = rows.samples}, 100);
  const WordFeatures f = hash_features(tape, rows, sentences, options);
  return {{f.ids.data, f.ids.data + f.ids.size}, {f.offsets.data, f.offsets.data + f.offsets.size}};
}

TEST(WordFeatures, AreThoseAroundEachWordOfItsSentence) {
  const std::vector<std::int32_t> words{5, 6, 7}, shapes{1, 2, 3}, offsets{0, 2, 3};
  const std::vector<std::int32_t> characters{8, 9}, character_offsets{0, 2, 2, 2};
  const Hashed hashed = hash({.words = words,
                              .shapes = shapes,
                              .characters = characters,
                              .character_offsets = character_offsets,
                              .offsets = offsets},
                             {.buckets = kBuckets});
  const auto of_words = [](int a, int b, int c, int d, int e) {
    return std::vector{row(0, {}),     row(1, {a}),    row(2, {b}),    row(3, {c}),
                       row(4, {d}),    row(5, {e}),    row(6, {a, b}), row(7, {b, c}),
                       row(8, {c, d}), row(9, {d, e}), row(10, {b, d})};
  };
  const auto of_shapes = [](int a, int b, int c) {
    return std::vector{row(32, {a}),    row(33, {b}),    row(34, {c}),
                       row(35, {a, b}), row(36, {b, c}), row(37, {a, b, c})};
  };
  const auto join = [](std::vector<std::int32_t> a, const std::vector<std::int32_t>& b) {
    a.insert(a.end(), b.begin(), b.end());
    return a;
  };
  const std::vector of_characters{row(64, {-1, 8}), row(64, {-1, 8, 9}), row(64, {-1, 8, 9, -1}),
                                  row(64, {8, 9}),  row(64, {8, 9, -1}), row(64, {9, -1})};
  EXPECT_EQ(hashed.of(0),
            join(join(of_words(-1, -1, 5, 6, -1), of_shapes(-1, 1, 2)), of_characters));
  EXPECT_EQ(hashed.of(1), join(of_words(-1, 5, 6, -1, -1), of_shapes(1, 2, -1)));
  EXPECT_EQ(hashed.of(2), join(of_words(-1, -1, 7, -1, -1), of_shapes(-1, 3, -1)));
}

TEST(WordFeatures, AreNotMoreThanTheirOffsetsCanSay) {
  const std::vector<std::int32_t> one{1}, offsets{0, 1}, character_offsets{0, 1 << 30};
  const WordRows rows{.words = one,
                      .shapes = one,
                      .characters = {one.data(), 1 << 30},  // counted, but not read
                      .character_offsets = character_offsets,
                      .offsets = offsets};
  EXPECT_THROWS(hash(rows, {.buckets = kBuckets}), kOptionValue, "features of 1 words are more");
}

TEST(WordFeatures, AreCountedBeforeTheyAreMade) {
  TaggerConfig c = tagger_config();
  const OwnedWords batch({4, 1, 8}, c);
  const Hashed hashed = hash(batch.view().rows, {.buckets = 50});
  for (std::size_t w = 0; w < batch.words.size(); ++w) {
    const index letters = batch.character_offsets[w + 1] - batch.character_offsets[w];
    EXPECT_EQ(static_cast<index>(hashed.of(w).size()), feature_count(letters));
  }
  EXPECT_LE(hashed.ids.size(),
            static_cast<std::size_t>(most_features(static_cast<index>(batch.words.size()),
                                                   static_cast<index>(batch.characters.size()))));
  EXPECT_EQ(feature_count(0), most_features(1, 0));
  EXPECT_EQ(feature_count(300), most_features(1, 300) - 2);
  EXPECT_EQ(feature_count(1), most_features(1, 1) - 1);
  EXPECT_TRUE(std::all_of(hashed.ids.begin(), hashed.ids.end(),
                          [](std::int32_t id) { return id >= 1 && id < 50; }));
}

TEST(WordFeatures, DropsAPartOfThemWhateverElseIsInTheBatch) {
  const OwnedWords all({40, 20, 40}, tagger_config());
  WordRows rows = all.view().rows;
  const std::vector<std::uint64_t> samples{7, 8, 9};
  rows.samples = samples;
  const FeatureOptions options{.buckets = 1 << 20, .dropout = 0.3, .key = {1, 2, 3}};
  const Hashed hashed = hash(rows, options), whole = hash(rows, options, TapeMode::kInference);
  index dropped = 0;
  for (std::size_t i = 0; i < hashed.ids.size(); ++i) {
    if (hashed.ids[i] == kDroppedFeature) {
      ++dropped;
    } else {
      EXPECT_EQ(hashed.ids[i], whole.ids[i]);
    }
  }
  const auto n = static_cast<double>(hashed.ids.size());
  EXPECT_NEAR(static_cast<double>(dropped) / n, 0.3, 5 * std::sqrt(0.21 / n));
  EXPECT_EQ(std::count(whole.ids.begin(), whole.ids.end(), kDroppedFeature), 0);
  // The last sentence alone.
  std::vector<std::int32_t> characters(all.character_offsets.begin() + 60,
                                       all.character_offsets.end());
  for (std::int32_t& offset : characters) offset -= all.character_offsets[60];
  const std::int32_t offsets[] = {0, 40};
  const Hashed last =
      hash({.words = {rows.words.data + 60, 40},
            .shapes = {rows.shapes.data + 60, 40},
            .characters = {rows.characters.data + all.character_offsets[60], characters.back()},
            .character_offsets = characters,
            .offsets = {offsets, 2},
            .samples = {samples.data() + 2, 1}},
           options);
  EXPECT_EQ(last.ids, std::vector(hashed.ids.begin() + hashed.offsets[60], hashed.ids.end()));
  FeatureOptions other = options;
  other.key.step = 3;
  EXPECT_NE(hash(rows, other).ids, hashed.ids);
}

}  // namespace
}  // namespace fovea
