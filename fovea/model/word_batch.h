// SPDX-License-Identifier: Apache-2.0
// The input of a tagger, and the n-grams of words around each word.
#pragma once

#include <cstdint>

#include "fovea/base/view.h"

namespace fovea {

/// N words of several sentences, one sentence after another, without padding. The members are
/// views.
struct WordRows {
  Vec<const std::int32_t> words = {};              ///< [N]
  Vec<const std::int32_t> shapes = {};             ///< [N]
  Vec<const std::int32_t> characters = {};         ///< [M]
  Vec<const std::int32_t> character_offsets = {};  ///< [N + 1], from 0 to M
  Vec<const std::int32_t> offsets = {};            ///< [sentences + 1], from 0 to N
  /// [sentences] numbers that name the dropout masks; may be empty
  Vec<const std::uint64_t> samples = {};
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
