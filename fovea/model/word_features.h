// SPDX-License-Identifier: Apache-2.0
// The input of a linear tagger: hashed features of each word, as those of a CRF for named entities
// (Tkachenko and Simanovsky 2012) and for Chinese words (Tseng et al. 2005).
#pragma once

#include <cstdint>

#include "fovea/base/random.h"
#include "fovea/base/view.h"
#include "fovea/grad/packed_rows.h"
#include "fovea/grad/tape.h"
#include "fovea/model/text_batch.h"

namespace fovea {

/// The row of a table that stands for features that are dropped.
inline constexpr std::int32_t kDroppedFeature = 0;

/// Bags of rows of a table: word w has ids[offsets[w]] to ids[offsets[w + 1] - 1].
struct WordFeatures {
  Vec<const std::int32_t> ids = {};
  Vec<const std::int32_t> offsets = {};  ///< [N + 1]
  double dropout = 0;                    ///< with which features were dropped
};

/// The longest n-gram of characters that is a feature; the shortest has 2.
inline constexpr index kLongestCharacterNgram = 5;

/// How many features a word of so many characters has.
index feature_count(index characters);
/// The most that so many words can have, with so many characters together.
index most_features(index words, index characters);

struct FeatureOptions {
  index buckets = 2;   ///< rows of the table
  double dropout = 0;  ///< probability that a feature counts as row 0, in training
  DropoutKey key = {};
};

/// The features of each word, in rows 1 to buckets - 1 of a table; row 0 stands for features that
/// are dropped. A word has: 1; the words at -2 to 2, the pairs (-2, -1), (-1, 0), (0, 1), (1, 2),
/// (-1, 1) of them; the shapes at -1, 0 and 1, the pairs (-1, 0) and (0, 1), and all three; and if
/// it has characters, each n-gram of 2 to 5 of them, with an end before the first and one behind
/// the last. Beyond the ends of a sentence stands a word of its own. Models keep their rows, so the
/// hash never changes: h = number of the template * 2^32 (those of words are 0 to 10, of shapes 32
/// to 37, of characters 64); for each id h = (h + id + 2) * 0x9E3779B97F4A7C15, an end being -1;
/// then the row is 1 + mix(h) mod (buckets - 1), with mix of SplitMix64. Feature f of a word is
/// dropped if word f % 4 of philox4x32({f / 4, place of the word, sample low, sample high},
/// philox_key(key)) is below dropout * 2^32, so no mask depends on the other sentences of a batch.
/// Throws kOptionValue if the words have 2^31 features together.
WordFeatures hash_features(Tape& tape, const WordRows& rows, const PackedRows& sentences,
                           const FeatureOptions& options);

}  // namespace fovea
