// SPDX-License-Identifier: Apache-2.0
#include "fovea/metrics/ngrams.h"

#include <algorithm>

namespace fovea::detail {

Ngrams ngrams_of(std::u32string_view units, index n) {
  Ngrams ngrams;
  const index count = ngram_count(units.size(), n);
  ngrams.reserve(static_cast<std::size_t>(count));
  for (index i = 0; i < count; ++i) {
    ++ngrams[units.substr(static_cast<std::size_t>(i), static_cast<std::size_t>(n))];
  }
  return ngrams;
}

void take_larger(Ngrams& ngrams, const Ngrams& other) {
  for (const auto& [ngram, count] : other) {
    index& mine = ngrams[ngram];
    mine = std::max(mine, count);
  }
}

index count_shared(const Ngrams& a, const Ngrams& b) {
  index shared = 0;
  for (const auto& [ngram, count] : a) {
    const auto found = b.find(ngram);
    if (found != b.end()) shared += std::min(count, found->second);
  }
  return shared;
}

std::u32string WordNumbers::of(std::span<const std::string_view> words) {
  std::u32string numbers;
  for (const std::string_view word : words) {
    const auto next = static_cast<char32_t>(numbers_.size());
    numbers += numbers_.emplace(word, next).first->second;
  }
  return numbers;
}

}  // namespace fovea::detail
