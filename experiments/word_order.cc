// SPDX-License-Identifier: Apache-2.0
#include "experiments/word_order.h"

#include <algorithm>
#include <map>
#include <string_view>
#include <utility>
#include <vector>

#include "fovea/base/check.h"
#include "fovea/base/types.h"
#include "fovea/text/python_text.h"

namespace fovea {

namespace {

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
