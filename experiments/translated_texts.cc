// SPDX-License-Identifier: Apache-2.0
#include "experiments/translated_texts.h"

#include <algorithm>
#include <map>
#include <string_view>
#include <utility>
#include <vector>

#include "fovea/base/check.h"
#include "fovea/base/types.h"
#include "fovea/base/words.h"
#include "fovea/text/python_text.h"
#include "fovea/text/utf8.h"

namespace fovea {

namespace {

constexpr index kMostTitleTokens = 29;

// The published code decomposes characters and leaves marks out; of those that these titles have,
// this changes one.
std::string normalised(const std::string& line) {
  std::string text;
  const std::string lower = python_lower(line);
  std::string_view rest = strip_both(lower);
  constexpr std::string_view kGrave = "\u00e8";
  while (!rest.empty()) {
    if (rest.starts_with(kGrave)) {
      text += 'e';
      rest.remove_prefix(kGrave.size());
      continue;
    }
    if (std::string_view(",.!?").find(rest.front()) != std::string_view::npos) text += ' ';
    text += rest.front();
    rest.remove_prefix(1);
  }
  return text;
}

// The place of each word that stands there once.
std::map<std::string_view, index> places_of(std::string_view text) {
  std::map<std::string_view, index> places, counts;
  index n = 0;
  for (const std::string_view word : python_words(text)) {
    ++counts[word];
    places[word] = n++;
  }
  std::erase_if(places, [&](const auto& place) { return counts[place.first] > 1; });
  return places;
}

// The places in the reference of the words of a translation, in its order.
std::vector<index> shared_places(std::string_view translation, std::string_view reference) {
  const auto made = places_of(translation), wanted = places_of(reference);
  std::vector<std::pair<index, index>> both;
  for (const auto& [word, place] : made) {
    const auto found = wanted.find(word);
    if (found != wanted.end()) both.emplace_back(place, found->second);
  }
  std::sort(both.begin(), both.end());
  std::vector<index> places;
  for (const auto& [place, in_reference] : both) places.push_back(in_reference);
  return places;
}

}  // namespace

SentencePairs titles_of(const std::vector<std::string>& chinese,
                        const std::vector<std::string>& english) {
  check(chinese.size() == english.size(), "titles: {} lines and {}", chinese.size(),
        english.size());
  SentencePairs pairs;
  for (std::size_t n = 0; n < chinese.size(); ++n) {
    std::string source = normalised(chinese[n]), target = normalised(english[n]);
    std::erase(source, ' ');
    const auto words = static_cast<index>(parts_between(target, ' ').size());
    if (count_characters(source) > kMostTitleTokens || words > kMostTitleTokens) continue;
    pairs.source.push_back(std::move(source));
    pairs.target.push_back(std::move(target));
  }
  return pairs;
}

double word_order(std::span<const std::string> translations,
                  std::span<const std::string> references) {
  check(translations.size() == references.size(), "word order: {} translations and {} references",
        translations.size(), references.size());
  index kept = 0, all = 0;
  for (std::size_t n = 0; n < translations.size(); ++n) {
    const std::vector<index> places = shared_places(translations[n], references[n]);
    for (std::size_t a = 0; a < places.size(); ++a) {
      for (std::size_t b = a + 1; b < places.size(); ++b) {
        ++all;
        kept += places[a] < places[b] ? 1 : 0;
      }
    }
  }
  return all == 0 ? 1 : static_cast<double>(kept) / static_cast<double>(all);
}

}  // namespace fovea
