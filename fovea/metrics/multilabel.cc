// SPDX-License-Identifier: Apache-2.0
#include "fovea/metrics/multilabel.h"

#include <map>
#include <string>

#include "fovea/base/check.h"
#include "fovea/metrics/inputs.h"
#include "fovea/metrics/sum.h"

namespace fovea {

namespace {

using detail::Hits;

// All examples with the same true and predicted labels.
struct Pattern {
  std::vector<std::size_t> truth, predicted, both;  // labels
};

struct Patterns {
  std::size_t labels = 0;
  std::vector<Pattern> patterns;  // in the order in which they occur first
  std::vector<Scores> scores;     // of each, over its labels
  std::vector<index> counts;
};

Pattern pattern_of(const std::string& key) {
  const std::size_t labels = key.size() / 2;
  Pattern pattern;
  for (std::size_t label = 0; label < labels; ++label) {
    const bool is_true = key[label] != 0, is_predicted = key[labels + label] != 0;
    if (is_true) pattern.truth.push_back(label);
    if (is_predicted) pattern.predicted.push_back(label);
    if (is_true && is_predicted) pattern.both.push_back(label);
  }
  return pattern;
}

Hits hits_of(const Pattern& pattern) {
  return {static_cast<index>(pattern.both.size()), static_cast<index>(pattern.truth.size()),
          static_cast<index>(pattern.predicted.size())};
}

Patterns patterns_of(Rows<const std::uint8_t> truth, Rows<const std::uint8_t> predicted) {
  constexpr const char* kWhat = "multilabel_report";
  check(truth.columns == predicted.columns && truth.columns >= 1,
        "{}: there are {} true labels, and {} predicted ones; there must be as many, and at least "
        "one",
        kWhat, truth.columns, predicted.columns);
  detail::check_lengths(kWhat, truth.rows, predicted.rows);
  Patterns found;
  found.labels = static_cast<std::size_t>(truth.columns);
  std::map<std::string, std::size_t> number_of;
  for (index n = 0; n < truth.rows; ++n) {
    std::string key;
    for (const auto& [name, row] : {std::pair{"true", truth[n]}, {"predicted", predicted[n]}}) {
      detail::check_flags(kWhat, fmt::format("example {}, {} label", n, name),
                          {row, truth.columns});
      key.append(row, row + truth.columns);
    }
    const auto [at, is_new] = number_of.try_emplace(key, found.patterns.size());
    if (is_new) {
      found.patterns.push_back(pattern_of(key));
      found.scores.push_back(detail::scores_of(hits_of(found.patterns.back())));
      found.counts.push_back(0);
    }
    ++found.counts[at->second];
  }
  return found;
}

MultilabelReport report_of(const Patterns& all, Vec<const index> times) {
  std::vector<Hits> labels(all.labels);
  std::vector<double> weights;
  index right = 0;
  MultilabelReport report;
  for (std::size_t i = 0; i < all.patterns.size(); ++i) {
    const Pattern& pattern = all.patterns[i];
    const index n = times[static_cast<index>(i)];
    for (const std::size_t label : pattern.truth) labels[label].truth += n;
    for (const std::size_t label : pattern.predicted) labels[label].predicted += n;
    for (const std::size_t label : pattern.both) labels[label].both += n;
    if (pattern.truth == pattern.predicted) right += n;
    report.examples += n;
    weights.push_back(static_cast<double>(n));
  }
  std::vector<double> ones(all.labels, 1), support;
  for (const Hits& hits : labels) {
    report.labels.push_back(detail::scores_of(hits));
    report.support.push_back(hits.truth);
    report.predicted.push_back(hits.predicted);
    support.push_back(static_cast<double>(hits.truth));
  }
  const Hits sum = detail::sum_of(labels);
  const auto examples = static_cast<double>(report.examples);
  report.subset_accuracy = static_cast<double>(right) / examples;
  report.hamming_loss = static_cast<double>(sum.truth + sum.predicted - 2 * sum.both) /
                        (examples * static_cast<double>(all.labels));
  report.macro = detail::mean_of(report.labels, ones);
  report.weighted = detail::mean_of(report.labels, support);
  report.micro = detail::scores_of(sum);
  report.samples = detail::mean_of(all.scores, weights);
  return report;
}

}  // namespace

MultilabelReport multilabel_report(Rows<const std::uint8_t> truth,
                                   Rows<const std::uint8_t> predicted) {
  const Patterns all = patterns_of(truth, predicted);
  return report_of(all, all.counts);
}

MultilabelIntervals multilabel_intervals(const Context& ctx, Rows<const std::uint8_t> truth,
                                         Rows<const std::uint8_t> predicted,
                                         const BootstrapOptions& options) {
  const Patterns all = patterns_of(truth, predicted);
  const auto of_resample = [&](Vec<const index> times) { return report_of(all, times); };
  return detail::report_intervals<MultilabelReportOf>(ctx, all.counts, of_resample, options);
}

}  // namespace fovea
