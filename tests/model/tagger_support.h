// SPDX-License-Identifier: Apache-2.0
// Small taggers and batches of tagged sentences.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "fovea/base/random.h"
#include "fovea/model/tagger.h"

namespace fovea {

inline TaggerConfig tagger_config(std::string encoder = {}, TagHead head = TagHead::kCrf) {
  TaggerConfig c;
  c.encoder = std::move(encoder);
  c.head = {head};
  c.word_width = 3;
  c.character_width = 2;
  c.character_features = 4;
  c.shape_width = 2;
  c.heads = 2;
  c.width = 4;
  c.ff = 5;
  c.block = 8;
  c.vocabulary = 7;
  c.characters = 6;
  c.tags = {3};
  return c;
}

/// That configuration with two columns of tags, of which the second has a softmax.
inline TaggerConfig two_columns(std::string encoder = {}) {
  TaggerConfig c = tagger_config(std::move(encoder));
  c.head = {TagHead::kCrf, TagHead::kSoftmax};
  c.tags = {3, 2};
  return c;
}

/// Hashed features, and nothing else.
inline TaggerConfig linear_config(TagHead head = TagHead::kCrf) {
  TaggerConfig c = tagger_config({}, head);
  c.word_width = c.shape_width = 0;
  c.character_reader = CharacterReader::kNone;
  c.linear = true;
  c.linear_buckets = 30;
  return c;
}

/// Sentences of the given lengths, of random words with 0 to 3 characters.
struct OwnedWords {
  OwnedWords(const std::vector<index>& lengths, const TaggerConfig& c, std::uint64_t seed = 2) {
    Random random(seed, RandomUse::kTest);
    const auto below = [&](index n) { return static_cast<std::int32_t>(random.below(n)); };
    tags.resize(c.tags.size());
    for (const index length : lengths) {
      for (index w = 0; w < length; ++w) {
        words.push_back(below(c.vocabulary));
        shapes.push_back(below(9));
        for (std::size_t n = 0; n < tags.size(); ++n) tags[n].push_back(below(c.tags[n]));
        for (index letters = random.below(4); letters > 0 && c.characters > 0; --letters) {
          characters.push_back(below(c.characters));
        }
        character_offsets.push_back(static_cast<std::int32_t>(characters.size()));
      }
      offsets.push_back(static_cast<std::int32_t>(words.size()));
    }
  }

  TaggedRows view() const {
    const auto of = [](const std::vector<std::int32_t>& values) {
      return Vec<const std::int32_t>{values.data(), static_cast<index>(values.size())};
    };
    std::vector<Vec<const std::int32_t>> columns;
    for (const std::vector<std::int32_t>& column : tags) columns.push_back(of(column));
    return {.rows = {.words = of(words),
                     .shapes = of(shapes),
                     .characters = of(characters),
                     .character_offsets = of(character_offsets),
                     .offsets = of(offsets)},
            .tags = std::move(columns)};
  }

  std::vector<std::int32_t> words, shapes, characters, character_offsets{0}, offsets{0};
  std::vector<std::vector<std::int32_t>> tags;  // of each column
};

}  // namespace fovea
