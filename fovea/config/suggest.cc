// SPDX-License-Identifier: Apache-2.0
#include "fovea/config/suggest.h"

#include <fmt/core.h>

#include <algorithm>
#include <cctype>
#include <vector>

namespace fovea {

namespace {

std::string folded(std::string_view word) {
  std::string result(word);
  for (char& c : result) {
    c = c == '_' ? '-' : static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  }
  return result;
}

/// Optimal string alignment (Damerau 1964), three rows of the table at a time.
std::size_t distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> before(b.size() + 1), above(b.size() + 1), row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) above[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t replaced = above[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      row[j] = std::min({above[j] + 1, row[j - 1] + 1, replaced});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        row[j] = std::min(row[j], before[j - 2] + 1);
      }
    }
    std::swap(before, above);
    std::swap(above, row);
  }
  return above[b.size()];
}

}  // namespace

std::string closest(std::string_view word, std::span<const std::string> candidates) {
  constexpr std::size_t kLongest = 100;
  if (word.size() > kLongest) return {};
  const std::string typed = folded(word);
  std::size_t best = std::max<std::size_t>(1, word.size() / 3) + 1;
  std::string result;
  for (const std::string& candidate : candidates) {
    const std::size_t d = distance(typed, folded(candidate));
    if (d < best) {
      best = d;
      result = candidate;
    }
  }
  return result;
}

std::string did_you_mean(std::string_view word, std::span<const std::string> candidates) {
  const std::string meant = closest(word, candidates);
  return meant.empty() ? "" : fmt::format("did you mean {}?", meant);
}

}  // namespace fovea
