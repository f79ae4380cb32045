// SPDX-License-Identifier: Apache-2.0
#include "fovea/report/attention_data.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "fovea/base/words.h"

namespace fovea {

namespace {

constexpr index kSampledRows = 24;       // of each head
constexpr double kBase64 = 8.0 / 6;      // characters for a byte
constexpr double kEstimateSlack = 0.97;  // what is left for rows that are not sampled
constexpr int kMostDecimals = 6, kFewestDecimals = 4;

double estimate_bytes(const AttentionPage& page, const WeightDigits& digits) {
  double bits = 0;
  for (const AttentionMap& map : page.maps) {
    for (index head = 0; head < map.heads; ++head) {
      const HeadWeights weights = head_of(page, map, head);
      bits += estimate_bits(weights, digits, std::max<index>(1, weights.queries / kSampledRows));
    }
  }
  return bits / 8 * kBase64;
}

index most_keys(const AttentionPage& page) {
  std::size_t most = 1;
  for (const AttentionMap& map : page.maps) {
    most = std::max(most, page.texts[map.key_text].tokens.size());
  }
  return static_cast<index>(most);
}

}  // namespace

HeadWeights head_of(const AttentionPage& page, const AttentionMap& map, index head) {
  const auto queries = static_cast<index>(page.texts[map.query_text].tokens.size());
  const auto keys = static_cast<index>(page.texts[map.key_text].tokens.size());
  const auto size = static_cast<std::size_t>(queries * keys);
  return {std::span(map.weights).subspan(size * static_cast<std::size_t>(head), size), queries,
          keys};
}

WeightDigits choose_digits(const AttentionPage& page, const PageLimits& limits) {
  WeightDigits digits;
  float largest = 0;
  for (const AttentionMap& map : page.maps) {
    for (const float weight : map.weights) {
      largest = std::max(largest, std::abs(weight));
      digits.negative = digits.negative || weight < 0;
    }
  }
  // A softmax may give 1.0000001.
  const int before = largest > 1.01F ? static_cast<int>(std::ceil(std::log10(largest))) : 0;
  for (const std::size_t room : {limits.fine, limits.most}) {
    for (int decimals = kMostDecimals; decimals >= kFewestDecimals; --decimals) {
      digits.decimals = decimals - before;
      if (estimate_bytes(page, digits) <= kEstimateSlack * static_cast<double>(room)) return digits;
    }
  }
  index some = 1, too_many = most_keys(page);
  while (some + 1 < too_many) {
    digits.strongest = (some + too_many) / 2;
    const double bytes = estimate_bytes(page, digits);
    (bytes <= kEstimateSlack * static_cast<double>(limits.most) ? some : too_many) =
        digits.strongest;
  }
  digits.strongest = some;
  return digits;
}

bool keep_fewer(const AttentionPage& page, WeightDigits& digits) {
  if (digits.strongest == 1) return false;
  digits.strongest = (digits.strongest == 0 ? most_keys(page) : digits.strongest) * 9 / 10;
  digits.strongest = std::max<index>(1, digits.strongest);
  return true;
}

CodedMasks code_masks(const AttentionPage& page) {
  CodedMasks masks;
  std::map<std::string, std::size_t> numbers;
  std::string json;
  for (const AttentionMap& map : page.maps) {
    for (index head = 0; head < map.heads; ++head) {
      const std::string code = code_mask(head_of(page, map, head));
      const auto [found, is_new] = numbers.try_emplace(code, numbers.size());
      if (is_new) json += fmt::format("{}\"{}\"", json.empty() ? "" : ",\n", base64(code));
      masks.of_heads.push_back(found->second);
    }
  }
  masks.data = {"masks", "[" + json + "]"};
  return masks;
}

std::vector<PageData> code_maps(const AttentionPage& page, const WeightDigits& digits,
                                const CodedMasks& masks) {
  std::vector<PageData> data;
  auto mask = masks.of_heads.begin();
  for (const AttentionMap& map : page.maps) {
    std::string of_heads, heads;
    for (index head = 0; head < map.heads; ++head) {
      const std::string_view comma = head == 0 ? "" : ",\n";
      of_heads += fmt::format("{}{}", head == 0 ? "" : ",", *mask++);
      heads +=
          fmt::format("{}\"{}\"", comma, base64(code_weights(head_of(page, map, head), digits)));
    }
    data.push_back({fmt::format("map-{}", data.size()),
                    fmt::format("{{\"masks\":[{}],\n\"heads\":[{}]}}", of_heads, heads)});
  }
  return data;
}

namespace {

double position_of(const PageText& text, std::size_t token) {
  return static_cast<double>(text.positions.empty() ? static_cast<index>(token)
                                                    : text.positions[token]);
}

struct Sums {
  double entropy = 0, distance = 0;
  index queries = 0;
};

void add_row(std::span<const float> row, double position, const PageText& keys, Sums& sums) {
  bool keeps = false;
  for (std::size_t key = 0; key < row.size(); ++key) {
    const float w = row[key];
    if (w == 0) continue;
    keeps = true;
    sums.distance += w * std::abs(position - position_of(keys, key));
    if (w > 0) sums.entropy -= w * std::log(static_cast<double>(w));
  }
  sums.queries += keeps ? 1 : 0;
}

}  // namespace

index strongest_cell(const HeadWeights& head) {
  index best = 0;
  bool has_choice = false;
  for (index query = 0; query < head.queries; ++query) {
    const std::span<const float> row = head.row(query);
    const auto size = static_cast<std::ptrdiff_t>(row.size());
    const bool chooses = size - std::count(row.begin(), row.end(), 0.0F) > 1;
    if (has_choice && !chooses) continue;
    const auto is_weaker = [](float a, float b) { return std::abs(a) < std::abs(b); };
    const auto most = std::max_element(row.begin(), row.end(), is_weaker);
    const bool is_first = chooses && !has_choice;
    has_choice = has_choice || chooses;
    if (is_first || is_weaker(head.weights[static_cast<std::size_t>(best)], *most)) {
      best = query * head.keys + (most - row.begin());
    }
  }
  return best;
}

HeadMeans head_means(const AttentionPage& page, const AttentionMap& map) {
  const PageText &queries = page.texts[map.query_text], &keys = page.texts[map.key_text];
  HeadMeans means;
  for (index h = 0; h < map.heads; ++h) {
    const HeadWeights head = head_of(page, map, h);
    Sums sums;
    for (index query = 0; query < head.queries; ++query) {
      const auto token = static_cast<std::size_t>(query);
      add_row(head.row(query), position_of(queries, token), keys, sums);
    }
    const auto count = static_cast<double>(std::max<index>(1, sums.queries));
    means.entropy.push_back(static_cast<float>(sums.entropy / count));
    means.distance.push_back(static_cast<float>(sums.distance / count));
    means.largest.push_back(head.weights[static_cast<std::size_t>(strongest_cell(head))]);
  }
  if (!map.entropy.empty()) means.entropy = map.entropy;
  if (!map.distance.empty()) means.distance = map.distance;
  if (!map.largest.empty()) means.largest = map.largest;
  return means;
}

}  // namespace fovea
