// SPDX-License-Identifier: Apache-2.0
#include "fovea/parts/axes.h"

#include <algorithm>
#include <charconv>
#include <utility>

namespace fovea {

std::vector<std::string_view> axis_words(std::string_view axes) {
  std::vector<std::string_view> words;
  while (!axes.empty()) {
    const std::size_t end = std::min(axes.find(' '), axes.size());
    words.push_back(axes.substr(0, end));
    axes.remove_prefix(std::min(end + 1, axes.size()));
  }
  return words;
}

std::string axes_text(std::string_view axes) {
  std::string text;
  for (const std::string_view one : axis_words(axes)) {
    std::string word(one);
    if (const std::size_t bar = word.find('|'); bar != std::string::npos) {
      word.replace(bar, 1, " or ");
    }
    text += text.empty() ? word : ", " + word;
  }
  return "[" + text + "]";
}

AxisWord axis_word(std::string_view text) {
  AxisWord word;
  const std::size_t bar = std::min(text.find('|'), text.size());
  word.or_one = bar < text.size();
  text = text.substr(0, bar);
  const char* const end = text.data() + text.size();
  const char* const rest = std::from_chars(text.data(), end, word.times).ptr;
  if (rest == end) return {.times = 0, .more = word.times, .or_one = word.or_one};
  const char* const plus = std::find(rest, end, '+');
  if (plus != end) std::from_chars(plus + 1, end, word.more);
  word.letter = {rest, plus};
  return word;
}

index size_of_letter(std::string_view letter, const AttentionSizes& sizes, index other) {
  const std::pair<std::string_view, index> known[] = {
      {"B", sizes.B}, {"T", sizes.T}, {"S", sizes.S},   {"H", sizes.H},
      {"G", sizes.G}, {"D", sizes.D}, {"Dv", sizes.Dv},
  };
  const auto* const found = std::find_if(std::begin(known), std::end(known),
                                         [&](auto& one) { return one.first == letter; });
  return found == std::end(known) ? other : found->second;
}

}  // namespace fovea
