// SPDX-License-Identifier: Apache-2.0
#include "fovea/metrics/calibration.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "fovea/base/check.h"
#include "fovea/metrics/inputs.h"
#include "fovea/metrics/predictions.h"
#include "fovea/metrics/sum.h"

namespace fovea {

namespace {

constexpr const char* kWhat = "reliability";

double edge(index m, index bins) { return static_cast<double>(m) / static_cast<double>(bins); }

// The first m with p <= (m + 1) / bins. The product may be off by one where p is an edge.
std::size_t bin_of(double p, index bins) {
  index m = static_cast<index>(p * static_cast<double>(bins));
  while (m > 0 && p <= edge(m, bins)) --m;
  while (m < bins - 1 && p > edge(m + 1, bins)) ++m;
  return static_cast<std::size_t>(m);
}

ReliabilityTable table_of_all(const detail::Reliability& reliability, index examples) {
  const std::vector<index> once_each(static_cast<std::size_t>(examples), 1);
  return reliability.table(once_each);
}

}  // namespace

namespace detail {

Reliability::Reliability(std::vector<double> confidences, std::vector<std::uint8_t> right,
                         index bins)
    : confidences_(std::move(confidences)), right_(std::move(right)), bins_(bins) {
  check(bins >= 1, "{}: bins must be at least 1; it is {}", kWhat, bins);
  for (const double p : confidences_) bin_of_.push_back(bin_of(p, bins));
}

ReliabilityTable Reliability::table(Vec<const index> times) const {
  struct Bin {
    index count = 0, right = 0;
    Sum confidence = {};
  };
  std::vector<Bin> sums(static_cast<std::size_t>(bins_));
  ReliabilityTable table;
  for (std::size_t n = 0; n < confidences_.size(); ++n) {
    const index count = times[static_cast<index>(n)];
    Bin& bin = sums[bin_of_[n]];
    bin.count += count;
    bin.right += count * right_[n];
    bin.confidence.add(static_cast<double>(count) * confidences_[n]);
    table.examples += count;
  }
  Sum ece;
  for (index m = 0; m < bins_; ++m) {
    const Bin& sum = sums[static_cast<std::size_t>(m)];
    ReliabilityBin bin{.low = edge(m, bins_), .high = edge(m + 1, bins_), .count = sum.count};
    if (sum.count > 0) {
      const auto count = static_cast<double>(sum.count);
      bin.confidence = sum.confidence.value() / count;
      bin.accuracy = static_cast<double>(sum.right) / count;
      const double gap = std::abs(bin.accuracy - bin.confidence);
      ece.add(count / static_cast<double>(table.examples) * gap);
      table.mce = std::max(table.mce, gap);
    }
    table.bins.push_back(bin);
  }
  table.ece = ece.value();
  return table;
}

Reliability top_label_reliability(Rows<const double> distributions, Vec<const std::int32_t> truth,
                                  index bins) {
  const std::vector<std::int32_t> predicted = most_likely_classes(distributions);
  std::vector<double> confidences;
  std::vector<std::uint8_t> right;
  for (index n = 0; n < distributions.rows; ++n) {
    const std::int32_t k = predicted[static_cast<std::size_t>(n)];
    confidences.push_back(distributions[n][k]);
    right.push_back(k == truth[n] ? 1 : 0);
  }
  return {std::move(confidences), std::move(right), bins};
}

}  // namespace detail

template <class T>
ReliabilityTable reliability(Rows<const T> probabilities, Vec<const std::int32_t> truth,
                             index bins) {
  detail::check_lengths(kWhat, truth.size, probabilities.rows);
  detail::check_labels(kWhat, "true", truth, probabilities.columns);
  const std::vector<double> all = detail::distributions_of(kWhat, probabilities);
  const Rows<const double> rows(all.data(), probabilities.rows, probabilities.columns);
  return table_of_all(detail::top_label_reliability(rows, truth, bins), truth.size);
}

template <class T>
ReliabilityTable reliability(Vec<const T> probabilities, Vec<const std::uint8_t> truth,
                             index bins) {
  detail::check_lengths(kWhat, truth.size, probabilities.size);
  detail::check_flags(kWhat, "the true label of example", truth);
  const detail::Reliability reliability(detail::probabilities_of(kWhat, probabilities),
                                        {truth.begin(), truth.end()}, bins);
  return table_of_all(reliability, truth.size);
}

template ReliabilityTable reliability(Rows<const float>, Vec<const std::int32_t>, index);
template ReliabilityTable reliability(Rows<const double>, Vec<const std::int32_t>, index);
template ReliabilityTable reliability(Vec<const float>, Vec<const std::uint8_t>, index);
template ReliabilityTable reliability(Vec<const double>, Vec<const std::uint8_t>, index);

}  // namespace fovea
