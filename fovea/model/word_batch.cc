// SPDX-License-Identifier: Apache-2.0
#include "fovea/model/word_batch.h"

#include "fovea/base/check.h"
#include "fovea/model/word_hash.h"

namespace fovea {

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
