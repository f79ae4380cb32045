// SPDX-License-Identifier: Apache-2.0
#include "fovea/data/tagged/characters.h"

#include "fovea/text/utf8.h"

namespace fovea {

std::vector<std::string> characters_of(std::string_view text) {
  std::vector<std::string> characters;
  while (!text.empty()) {
    const DecodedCharacter c = decode_character(text);
    const std::string_view bytes = text.substr(0, static_cast<std::size_t>(c.length));
    text.remove_prefix(bytes.size());
    if (!is_white_space(c.value)) characters.emplace_back(bytes);
  }
  return characters;
}

TaggedSentence to_characters(const TaggedSentence& words) {
  TaggedSentence sentence;
  std::vector<std::string>& tags = sentence.tags.emplace_back();
  for (std::size_t w = 0; w < words.words.size(); ++w) {
    std::vector<std::string> characters = characters_of(words.words[w]);
    const std::string type = words.tags.empty() ? "" : "-" + words.tags[0][w];
    const std::size_t count = characters.size();
    for (std::size_t i = 0; i < count; ++i) {
      const char part = count == 1 ? 'S' : i == 0 ? 'B' : i + 1 == count ? 'E' : 'M';
      sentence.words.push_back(std::move(characters[i]));
      tags.push_back(part + type);
      sentence.lines.push_back(words.lines[w]);
    }
  }
  return sentence;
}

}  // namespace fovea
