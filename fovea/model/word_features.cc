// SPDX-License-Identifier: Apache-2.0
#include "fovea/model/word_features.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "fovea/base/check.h"
#include "fovea/kernel/dropout.h"
#include "fovea/model/ngram_ids.h"

namespace fovea {

namespace {

constexpr std::int32_t kEnd = -1;

// The places, from the word, whose ids a feature joins.
struct Template {
  std::array<std::int8_t, 3> places;
  std::size_t size;
};
constexpr std::array<Template, 11> kOfWords = {{{{}, 0},
                                                {{-2}, 1},
                                                {{-1}, 1},
                                                {{0}, 1},
                                                {{1}, 1},
                                                {{2}, 1},
                                                {{-2, -1}, 2},
                                                {{-1, 0}, 2},
                                                {{0, 1}, 2},
                                                {{1, 2}, 2},
                                                {{-1, 1}, 2}}};
constexpr std::array<Template, 6> kOfShapes = {
    {{{-1}, 1}, {{0}, 1}, {{1}, 1}, {{-1, 0}, 2}, {{0, 1}, 2}, {{-1, 0, 1}, 3}}};
constexpr std::uint32_t kFirstOfShapes = 32, kFirstOfCharacters = 64;  // numbers of templates

class Hasher {
 public:
  Hasher(index buckets, std::int32_t* to) : buckets_(buckets), to_(to) {}

  // The n-th id of the sentence, which has `size`.
  template <class Templates>
  void add(const Templates& templates, std::uint32_t first, Vec<const std::int32_t> sentence,
           index n) {
    for (const Template& t : templates) {
      WordHash h(first++);
      for (std::size_t k = 0; k < t.size; ++k) {
        const index at = n + t.places[k];
        h = h.with(at >= 0 && at < sentence.size ? sentence[at] : kEnd);
      }
      keep(h);
    }
  }

  void add_ngrams(Vec<const std::int32_t> characters) {
    const index m = characters.size;
    const auto at = [&](index i) { return i == 0 || i > m ? kEnd : characters[i - 1]; };
    for (index begin = 0; m > 0 && begin <= m; ++begin) {
      WordHash h(kFirstOfCharacters);
      for (index i = begin; i < std::min(begin + kLongestCharacterNgram, m + 2); ++i) {
        h = h.with(at(i));
        if (i > begin) keep(h);
      }
    }
  }

  const std::int32_t* end() const { return to_; }

 private:
  void keep(WordHash h) { *to_++ = 1 + h.row(buckets_ - 1); }

  index buckets_;
  std::int32_t* to_;
};

Vec<const std::int32_t> part(Vec<const std::int32_t> all, index begin, index end) {
  return {all.data + begin, end - begin};
}

struct FeatureMask {
  PhiloxKey key;
  std::uint32_t below;
};

void drop(std::int32_t* ids, index count, const SampleRow& word, const FeatureMask& mask) {
  PhiloxCounter drawn{};
  for (index f = 0; f < count; ++f) {
    if (f % 4 == 0) {
      drawn = philox4x32(
          {static_cast<std::uint32_t>(f / 4), word.row, static_cast<std::uint32_t>(word.sample),
           static_cast<std::uint32_t>(word.sample >> 32)},
          mask.key);
    }
    if (drawn[static_cast<std::size_t>(f % 4)] < mask.below) ids[f] = kDroppedFeature;
  }
}

}  // namespace

index feature_count(index characters) {
  index count = static_cast<index>(kOfWords.size() + kOfShapes.size());
  for (index n = 2; characters > 0 && n <= kLongestCharacterNgram; ++n) {
    count += std::max<index>(0, characters + 3 - n);
  }
  return count;
}

// A word of m characters has m + 1 pairs, m triples, m - 1 and m - 2 longer ones: less than 4 m.
index most_features(index words, index characters) {
  return words * feature_count(0) + (kLongestCharacterNgram - 1) * characters;
}

WordFeatures hash_features(Tape& tape, const WordRows& rows, const PackedRows& sentences,
                           const FeatureOptions& options) {
  const index N = rows.words.size;
  const auto characters_of = [&](index w) {
    if (rows.characters.empty()) return Vec<const std::int32_t>{};
    return part(rows.characters, rows.character_offsets[w], rows.character_offsets[w + 1]);
  };
  auto* const offsets = tape.saved<std::int32_t>(N + 1);
  index count = offsets[0] = 0;
  for (index w = 0; w < N; ++w) {
    count += feature_count(characters_of(w).size);
    if (count > std::numeric_limits<std::int32_t>::max()) {
      fail(ErrorCode::kOptionValue,
           "batch: {} features of {} words are more than it can hold (there are {} words)", count,
           w + 1, N);
    }
    offsets[w + 1] = static_cast<std::int32_t>(count);
  }
  auto* const ids = tape.saved<std::int32_t>(offsets[N]);
  for (index s = 0; s + 1 < rows.offsets.size; ++s) {
    const index begin = rows.offsets[s], end = rows.offsets[s + 1];
    for (index w = begin; w < end; ++w) {
      Hasher hasher(options.buckets, ids + offsets[w]);
      hasher.add(kOfWords, 0, part(rows.words, begin, end), w - begin);
      hasher.add(kOfShapes, kFirstOfShapes, part(rows.shapes, begin, end), w - begin);
      hasher.add_ngrams(characters_of(w));
    }
  }
  if (tape.mode() == TapeMode::kTrain && options.dropout > 0) {
    const PhiloxKey key = philox_key(options.key);
    const auto below = static_cast<std::uint32_t>(std::ldexp(options.dropout, 32));
    for (index w = 0; w < N; ++w) {
      drop(ids + offsets[w], offsets[w + 1] - offsets[w], sentences.rows[w], {key, below});
    }
  }
  return {{ids, offsets[N]}, {offsets, N + 1}, options.dropout};
}

}  // namespace fovea
