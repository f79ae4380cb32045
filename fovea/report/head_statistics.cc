// SPDX-License-Identifier: Apache-2.0
#include "fovea/report/head_statistics.h"

#include <algorithm>
#include <cmath>

#include "fovea/report/attention_data.h"

namespace fovea {

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
