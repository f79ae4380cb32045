// SPDX-License-Identifier: Apache-2.0
#include "experiments/titles.h"

#include <algorithm>
#include <string_view>

#include "fovea/base/check.h"
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

}  // namespace fovea
