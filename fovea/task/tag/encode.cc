// SPDX-License-Identifier: Apache-2.0
#include "fovea/task/tag/encode.h"

#include <algorithm>

#include "fovea/text/words.h"

namespace fovea {

namespace {

token only_token(const Tokenizer& tokenizer, const std::string& text) {
  const std::vector<token> ids = tokenizer.encode(text, "word");
  return ids.size() == 1 ? ids[0] : tokenizer.special().unknown;
}

}  // namespace

token TaggerVocabulary::word(const std::string& text) const { return only_token(*words, text); }

bool TaggerVocabulary::knows(const std::string& text) const {
  return only_token(*known, text) != known->special().unknown;
}

void append(TaggedWords& all, const TaggerVocabulary& vocabulary,
            std::span<const std::string> words, std::span<const std::vector<std::int32_t>> tags) {
  for (const std::string& word : words) {
    all.words.push_back(vocabulary.word(word));
    all.shapes.push_back(word_shape(word));
    if (vocabulary.characters) {
      const auto begin = static_cast<index>(all.characters.size());
      vocabulary.characters->append_tokens(all.characters, word, "word");
      cut_middle(all.characters, begin);
    }
    all.character_starts.push_back(static_cast<index>(all.characters.size()));
  }
  all.tags.resize(tags.size());
  for (std::size_t c = 0; c < tags.size(); ++c) {
    all.tags[c].insert(all.tags[c].end(), tags[c].begin(), tags[c].end());
  }
  all.starts.push_back(static_cast<index>(all.words.size()));
}

std::vector<WordRange> pieces_of(index length, index most) {
  std::vector<WordRange> pieces;
  for (index begin = 0; begin < length; begin += most) {
    pieces.push_back({begin, std::min(length, begin + most)});
  }
  return pieces;
}

}  // namespace fovea
