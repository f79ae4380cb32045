// SPDX-License-Identifier: Apache-2.0
// The n-grams of texts as rows of a table of any size: by a hash of their tokens (Joulin et al.
// 2016, arXiv:1607.01759, section 2.2). Two that share a row share what is learned of them.
#pragma once

#include <cstdint>

#include "fovea/base/context.h"
#include "fovea/base/view.h"

namespace fovea {

inline constexpr index kLongestNgram = 16;

struct NgramOptions {
  index longest = 2;  ///< n-grams of 2 tokens to so many, at most kLongestNgram
  index buckets = 1;  ///< rows of the table
};

/// N tokens of several texts: ids [N], offsets [texts + 1] from 0 to N.
struct NgramTexts {
  Vec<const std::int32_t> ids, offsets;
};

/// How many n-grams a text of so many tokens has: tokens - n + 1 for each n <= tokens.
index ngram_count(index tokens, index longest);

/// Where the n-grams of each text begin in the list of all, [texts + 1] as `offsets`; returns how
/// many there are. Throws kShape if they are beyond int32.
index ngram_offsets(Vec<const std::int32_t> offsets, index longest, Vec<std::int32_t> result);

/// The row of each n-gram, text by text; in a text by the place of their last token, shorter ones
/// first. The same tokens in the same order have the same row, in every text. A model keeps its
/// rows, so the hash never changes: h = 0; for each token h = (h + id + 1) * 0x9E3779B97F4A7C15;
/// then the row is mix(h) mod buckets, with mix of SplitMix64 (Steele et al. 2014).
void hash_ngrams(const Context& context, const NgramTexts& texts, const NgramOptions& options,
                 Vec<std::int32_t> rows);

}  // namespace fovea
