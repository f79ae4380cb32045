// SPDX-License-Identifier: Apache-2.0
#include "fovea/model/ngram_ids.h"

#include <algorithm>
#include <limits>
#include <vector>

#include "fovea/base/check.h"

namespace fovea {

namespace {

constexpr double kCost = 10;  // of a hash, in flops: a division is the most of it

// Hashes the n-grams of one text. Those that end at a token are computed from its left neighbours,
// nearest first, so the powers of the factor are known: h of n tokens is the sum of (id + 1)
// factor^k, k = 1 for the last token.
void hash_text(Vec<const std::int32_t> ids, const NgramOptions& options, std::int32_t* to) {
  const auto buckets = static_cast<std::uint64_t>(options.buckets);
  for (index last = 1; last < ids.size; ++last) {
    std::uint64_t power = kHashFactor, h = (static_cast<std::uint64_t>(ids[last]) + 1) * power;
    const index most = std::min(options.longest, last + 1);
    for (index n = 2; n <= most; ++n) {
      power *= kHashFactor;
      h += (static_cast<std::uint64_t>(ids[last - n + 1]) + 1) * power;
      *to++ = static_cast<std::int32_t>(mixed(h) % buckets);
    }
  }
}

}  // namespace

index ngram_count(index tokens, index longest) {
  index count = 0;
  for (index n = 2; n <= std::min(tokens, longest); ++n) count += tokens - n + 1;
  return count;
}

index ngram_offsets(Vec<const std::int32_t> offsets, index longest, Vec<std::int32_t> result) {
  check(offsets.size >= 1 && result.size == offsets.size,
        "n-grams: {} offsets for the n-grams of {}", result.size, offsets.size);
  index sum = result[0] = 0;
  for (index s = 0; s + 1 < offsets.size; ++s) {
    sum += ngram_count(offsets[s + 1] - offsets[s], longest);
    check(sum <= std::numeric_limits<std::int32_t>::max(),
          "n-grams: the batch has more than 2^31 - 1 of them");
    result[s + 1] = static_cast<std::int32_t>(sum);
  }
  return sum;
}

void hash_ngrams(const Context& context, const NgramTexts& texts, const NgramOptions& options,
                 Vec<std::int32_t> rows) {
  check(options.longest >= 2 && options.longest <= kLongestNgram,
        "n-grams: the longest has {} tokens; expected 2 to {}", options.longest, kLongestNgram);
  check(options.buckets >= 1 && options.buckets <= std::numeric_limits<std::int32_t>::max(),
        "n-grams: {} buckets; expected 1 to 2^31 - 1", options.buckets);
  const index S = texts.offsets.size - 1;
  std::vector<std::int32_t> starts(static_cast<std::size_t>(S + 1));
  const index count = ngram_offsets(texts.offsets, options.longest, {starts.data(), S + 1});
  check(rows.size == count, "n-grams: room for {} rows; there are {}", rows.size, count);
  // A plan leaves the loop out, and whoever reads the rows checks them.
  if (context.plan() != nullptr) std::fill(rows.begin(), rows.end(), 0);
  const double cost =
      kCost * static_cast<double>(count) / static_cast<double>(std::max<index>(S, 1));
  context.for_ranges(S, cost, [&](index begin, index end) {
    for (index s = begin; s < end; ++s) {
      const index first = texts.offsets[s];
      hash_text({texts.ids.data + first, texts.offsets[s + 1] - first}, options,
                rows.data + starts[static_cast<std::size_t>(s)]);
    }
  });
}

void hash_contexts(Vec<const std::int32_t> words, Vec<const std::int32_t> offsets, index buckets,
                   Vec<std::int32_t> rows) {
  check(rows.size == kContextNgrams * words.size, "n-grams: {} rows for {} words", rows.size,
        words.size);
  for (index s = 0; s + 1 < offsets.size; ++s) {
    for (index w = offsets[s]; w < offsets[s + 1]; ++w) {
      const std::int32_t before = w > offsets[s] ? words[w - 1] : -1;
      const std::int32_t behind = w + 1 < offsets[s + 1] ? words[w + 1] : -1;
      std::int32_t* const of_word = rows.data + kContextNgrams * w;
      of_word[0] = WordHash(0).with(before).with(words[w]).row(buckets);
      of_word[1] = WordHash(1).with(words[w]).with(behind).row(buckets);
      of_word[2] = WordHash(2).with(before).with(words[w]).with(behind).row(buckets);
    }
  }
}

}  // namespace fovea
