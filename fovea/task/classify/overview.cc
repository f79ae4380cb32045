// SPDX-License-Identifier: Apache-2.0
#include "fovea/task/classify/overview.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "fovea/text/utf8.h"

namespace fovea {

namespace {

constexpr std::size_t kMostClassesListed = 10;

double percent(index part, index all) {
  return 100 * static_cast<double>(part) / static_cast<double>(std::max<index>(all, 1));
}

std::string share_of_unknown(const Examples& examples, token unknown) {
  const auto count = std::count(examples.stream.begin(), examples.stream.end(), unknown);
  return fmt::format("{:.1f} %", percent(count, static_cast<index>(examples.stream.size())));
}

}  // namespace

std::string length_line(std::string_view name, SetOverview set, index max_length,
                        InputWords words) {
  std::vector<index>& lengths = set.lengths;
  std::sort(lengths.begin(), lengths.end());
  const std::size_t n = lengths.size();
  const index truncated = set.examples.truncated;
  std::string line = fmt::format("{}: {} {}{}; {}s: median {}, 90 % at most {}, longest {}", name,
                                 n, words.entry, n == 1 ? "" : "s", words.row, lengths[(n - 1) / 2],
                                 lengths[(9 * (n - 1)) / 10], lengths.back());
  return truncated == 0 ? line : line + fmt::format("; cut to {}: {}", max_length, truncated);
}

std::string balance_line(const LabelSet& labels, const LabelCounts& found) {
  std::vector<std::size_t> order(found.counts.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return found.counts[a] > found.counts[b]; });
  std::string line = fmt::format("{}: {}", found.multi_label ? "labels" : "classes", order.size());
  for (std::size_t i = 0; i < std::min(kMostClassesListed, order.size()); ++i) {
    const index count = found.counts[order[i]];
    line += fmt::format("{} {} {} ({:.1f} %)", i == 0 ? ";" : ",",
                        escape_text(labels.names()[order[i]]), count, percent(count, found.texts));
  }
  return order.size() > kMostClassesListed ? line + ", ..." : line;
}

std::string number_line(const std::vector<double>& numbers, const NumberScale& scale) {
  const auto [least, most] = std::minmax_element(numbers.begin(), numbers.end());
  return fmt::format("numbers: {} to {}, mean {:.{}g}, standard deviation {:.4g}", *least, *most,
                     scale.center, scale.digits(scale.center), scale.scale);
}

std::string unknown_line(const Examples& training, const Examples* validation, token unknown) {
  const auto has = [&](const Examples& examples) {
    return std::find(examples.stream.begin(), examples.stream.end(), unknown) !=
           examples.stream.end();
  };
  if (!has(training) && (validation == nullptr || !has(*validation))) return {};
  std::string line =
      fmt::format("unknown words: {} of the training texts", share_of_unknown(training, unknown));
  if (validation != nullptr) {
    line += fmt::format(", {} of the validation texts", share_of_unknown(*validation, unknown));
  }
  return line;
}

}  // namespace fovea
