// SPDX-License-Identifier: Apache-2.0
// N-grams as rows of a table of any size, by a hash of their tokens or words (Joulin et al. 2016,
// arXiv:1607.01759, section 2.2). Two that share a row share what is learned of them. Models keep
// their rows, so no hash ever changes.
#pragma once

#include <algorithm>
#include <cstdint>

#include "fovea/base/context.h"
#include "fovea/base/types.h"
#include "fovea/base/view.h"

namespace fovea {

inline constexpr std::uint64_t kHashFactor = 0x9E3779B97F4A7C15;

/// Neighbouring hashes become numbers that are far apart, as SplitMix64 ends (Steele et al. 2014).
constexpr std::uint64_t mixed(std::uint64_t h) {
  h = (h ^ (h >> 30)) * 0xBF58476D1CE4E5B9;
  h = (h ^ (h >> 27)) * 0x94D049BB133111EB;
  return h ^ (h >> 31);
}

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

/// Calls f(first, length) for each n-gram of a text of so many tokens, in the order of
/// hash_ngrams().
template <class F>
void for_each_ngram(index tokens, index longest, F&& f) {
  for (index last = 1; last < tokens; ++last) {
    for (index n = 2; n <= std::min(longest, last + 1); ++n) f(last - n + 1, n);
  }
}

/// Where the n-grams of each text begin in the list of all, [texts + 1] as `offsets`; returns how
/// many there are. Throws kShape if they are beyond int32.
index ngram_offsets(Vec<const std::int32_t> offsets, index longest, Vec<std::int32_t> result);

/// The row of each n-gram, text by text; in a text by the place of their last token, shorter ones
/// first. The same tokens in the same order have the same row, in every text. A model keeps its
/// rows, so the hash never changes: h = 0; for each token h = (h + id + 1) * 0x9E3779B97F4A7C15;
/// then the row is mix(h) mod buckets, with mix of SplitMix64 (Steele et al. 2014).
void hash_ngrams(const Context& context, const NgramTexts& texts, const NgramOptions& options,
                 Vec<std::int32_t> rows);

/// The hash of an n-gram of words.
class WordHash {
 public:
  /// `kind`: which of the n-grams it is. Above the ids, so that (kind, id) and (kind + 1, id - 1)
  /// differ.
  explicit constexpr WordHash(std::uint32_t kind) : h_(std::uint64_t{kind} << 32) {}

  /// The id of a word, or -1 for what lies beyond an end.
  constexpr WordHash with(std::int32_t id) const {
    WordHash more = *this;
    more.h_ = (h_ + static_cast<std::uint64_t>(id + 2)) * kHashFactor;
    return more;
  }
  /// In 0 to rows - 1.
  constexpr std::int32_t row(index rows) const {
    return static_cast<std::int32_t>(mixed(h_) % static_cast<std::uint64_t>(rows));
  }

 private:
  std::uint64_t h_;
};

/// How many n-grams each word has: those before and behind it that it begins or ends, of 2, and of
/// 3 that around it.
inline constexpr index kContextNgrams = 3;

/// The rows of a table of `buckets` for the n-grams of each word [N kContextNgrams]: (before,
/// word), (word, behind), (before, word, behind). Beyond the ends of a sentence stands a word of
/// its own. Models keep their rows, so the hash never changes: h = which of the three * 2^32; for
/// each word h = (h + id + 2) * 0x9E3779B97F4A7C15, the word beyond the ends being -1; then the row
/// is mix(h) mod buckets, with mix of SplitMix64.
void hash_contexts(Vec<const std::int32_t> words, Vec<const std::int32_t> offsets, index buckets,
                   Vec<std::int32_t> rows);

}  // namespace fovea
