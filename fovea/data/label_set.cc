// SPDX-License-Identifier: Apache-2.0
#include "fovea/data/label_set.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "fovea/base/random.h"
#include "fovea/data/epoch_order.h"
#include "fovea/text/utf8.h"

namespace fovea {

namespace {

// Strata draw from streams that no epoch has.
constexpr std::uint64_t kFirstStratum = std::uint64_t{1} << 63;

bool is_digit(char c) { return c >= '0' && c <= '9'; }

// The digits at the front, without leading zeros, which are taken from it.
std::string_view take_number(std::string_view& text) {
  const auto digits =
      static_cast<std::size_t>(std::find_if_not(text.begin(), text.end(), is_digit) - text.begin());
  std::string_view number = text.substr(0, digits);
  text.remove_prefix(digits);
  number.remove_prefix(std::min(number.find_first_not_of('0'), number.size()));
  return number;
}

// A number of fewer digits is smaller.
int compare_numbers(std::string_view a, std::string_view b) {
  if (a.size() != b.size()) return a.size() < b.size() ? -1 : 1;
  return a.compare(b);
}

// < 0, 0 or > 0, as std::string_view::compare.
int compare_naturally(std::string_view a, std::string_view b) {
  while (!a.empty() && !b.empty()) {
    if (is_digit(a.front()) && is_digit(b.front())) {
      const std::string_view x = take_number(a), y = take_number(b);
      if (const int order = compare_numbers(x, y); order != 0) return order;
      continue;
    }
    if (a.front() != b.front()) {
      return static_cast<unsigned char>(a.front()) < static_cast<unsigned char>(b.front()) ? -1 : 1;
    }
    a.remove_prefix(1);
    b.remove_prefix(1);
  }
  return a.compare(b);
}

// In lower case, without white space.
std::string plain_form(std::string_view name) {
  std::string plain;
  while (!name.empty()) {
    const TakenCharacter c = take_character(name);
    if (!is_white_space(c.value)) append_utf8(plain, lower_character(c.value));
  }
  return plain;
}

}  // namespace

bool natural_less(std::string_view a, std::string_view b) {
  const bool minus_a = a.starts_with('-') && a.size() > 1 && is_digit(a[1]);
  const bool minus_b = b.starts_with('-') && b.size() > 1 && is_digit(b[1]);
  if (minus_a != minus_b && (minus_a || minus_b)) {
    const std::string_view other = minus_a ? b : a;
    if (!other.empty() && is_digit(other.front())) return minus_a;
  }
  const int order = minus_a && minus_b ? compare_naturally(b, a) : compare_naturally(a, b);
  return order != 0 ? order < 0 : a < b;
}

LabelSet::LabelSet(std::vector<std::string> labels) : names_(std::move(labels)) {
  std::sort(names_.begin(), names_.end(), natural_less);
  names_.erase(std::unique(names_.begin(), names_.end()), names_.end());
}

std::int32_t LabelSet::find(const std::string& label) const {
  const auto found = std::lower_bound(names_.begin(), names_.end(), label, natural_less);
  if (found == names_.end() || *found != label) return -1;
  return static_cast<std::int32_t>(found - names_.begin());
}

std::string names_alike(std::span<const std::string> names) {
  constexpr index kMostListed = 3;
  std::map<std::string, std::vector<std::string_view>> groups;
  for (const std::string& name : names) groups[plain_form(name)].push_back(name);
  std::string list;
  index listed = 0;
  for (const auto& [plain, alike] : groups) {
    if (alike.size() < 2) continue;
    if (listed++ == kMostListed) return list + ", ...";
    list += (list.empty() ? "" : ", ") + excerpt(alike[0]) + " and " + excerpt(alike[1]);
  }
  return list;
}

std::vector<bool> draw_stratified(std::span<const index> strata, double fraction,
                                  std::uint64_t seed) {
  std::vector<bool> drawn(strata.size());
  if (strata.empty()) return drawn;
  std::vector<std::vector<index>> items(
      static_cast<std::size_t>(*std::max_element(strata.begin(), strata.end()) + 1));
  for (std::size_t i = 0; i < strata.size(); ++i) {
    items[static_cast<std::size_t>(strata[i])].push_back(static_cast<index>(i));
  }
  double owed = 0.5;  // what earlier strata left, so that the parts add up
  for (std::size_t stratum = 0; stratum < items.size(); ++stratum) {
    std::vector<index>& all = items[stratum];
    if (all.empty()) continue;
    Random random(seed, RandomUse::kBatches, kFirstStratum + stratum);
    shuffle(all, random);
    owed += fraction * static_cast<double>(all.size());
    const auto most = static_cast<double>(all.size() - 1);
    const double count = std::clamp(std::floor(owed), 0.0, most);
    owed -= count;
    for (std::size_t i = 0; i < static_cast<std::size_t>(count); ++i) {
      drawn[static_cast<std::size_t>(all[i])] = true;
    }
  }
  return drawn;
}

}  // namespace fovea
