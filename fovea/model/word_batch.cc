// SPDX-License-Identifier: Apache-2.0
#include "fovea/model/word_batch.h"

#include "fovea/base/check.h"

namespace fovea {

namespace {

constexpr std::uint64_t kOdd = 0x9E3779B97F4A7C15u;

// SplitMix64's finish (Steele et al. 2014).
std::uint64_t mix(std::uint64_t x) {
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
  return x ^ (x >> 31);
}

std::uint64_t add(std::uint64_t h, std::int32_t word) {
  return (h + static_cast<std::uint64_t>(word + 2)) * kOdd;
}

}  // namespace

void hash_contexts(Vec<const std::int32_t> words, Vec<const std::int32_t> offsets, index buckets,
                   Vec<std::int32_t> rows) {
  check(rows.size == kContextNgrams * words.size, "n-grams: {} rows for {} words", rows.size,
        words.size);
  const auto row = [&](std::uint64_t h) {
    return static_cast<std::int32_t>(mix(h) % static_cast<std::uint64_t>(buckets));
  };
  for (index s = 0; s + 1 < offsets.size; ++s) {
    for (index w = offsets[s]; w < offsets[s + 1]; ++w) {
      const std::int32_t before = w > offsets[s] ? words[w - 1] : -1;
      const std::int32_t behind = w + 1 < offsets[s + 1] ? words[w + 1] : -1;
      std::int32_t* const of_word = rows.data + kContextNgrams * w;
      of_word[0] = row(add(add(0, before), words[w]));
      of_word[1] = row(add(add(1, words[w]), behind));
      of_word[2] = row(add(add(add(2, before), words[w]), behind));
    }
  }
}

}  // namespace fovea
