// SPDX-License-Identifier: Apache-2.0
// n-grams of characters, or of words that have a number each, and how many of them two texts share.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "fovea/base/types.h"
#include "fovea/text/keyed_hash.h"

namespace fovea::detail {

/// How often each n-gram occurs. It views the units, which must outlive it.
using Ngrams = KeyedMap<std::u32string_view, index>;

/// All n-grams of the units, n >= 1.
Ngrams ngrams_of(std::u32string_view units, index n);

/// Raises each count to that of `other`, where that is larger.
void take_larger(Ngrams& ngrams, const Ngrams& other);

/// The sum over n-grams of the smaller of both counts.
index count_shared(const Ngrams& a, const Ngrams& b);

/// How many n-grams there are in so many units.
constexpr index ngram_count(std::size_t units, index n) {
  return static_cast<index>(units) < n ? 0 : static_cast<index>(units) - n + 1;
}

/// Gives equal words equal numbers. It views the words, which must outlive it.
class WordNumbers {
 public:
  std::u32string of(std::span<const std::string_view> words);

 private:
  KeyedMap<std::string_view, char32_t> numbers_;
};

}  // namespace fovea::detail
