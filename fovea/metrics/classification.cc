// SPDX-License-Identifier: Apache-2.0
#include "fovea/metrics/classification.h"

#include <map>
#include <string>

#include "fovea/base/check.h"
#include "fovea/base/machine.h"
#include "fovea/metrics/inputs.h"
#include "fovea/metrics/sum.h"

namespace fovea {

namespace {

using detail::Hits;

// The cells of a matrix that hold examples.
struct Cells {
  index classes = 0;
  std::vector<std::size_t> truth, predicted;
  std::vector<index> counts;
};

Cells cells_of(const ConfusionMatrix& confusion) {
  const index K = confusion.classes;
  check(K >= 1 && static_cast<index>(confusion.counts.size()) ==
                      checked_product(K, K, "classification_report: classes^2"),
        "classification_report: the matrix of {} classes has {} counts; it must have {} of them", K,
        confusion.counts.size(), K * K);
  Cells cells{.classes = K, .truth = {}, .predicted = {}, .counts = {}};
  for (index t = 0; t < K; ++t) {
    for (index p = 0; p < K; ++p) {
      const index count = confusion.at(t, p);
      check(count >= 0, "classification_report: the count of true class {}, predicted {} is {}", t,
            p, count);
      if (count == 0) continue;
      cells.truth.push_back(static_cast<std::size_t>(t));
      cells.predicted.push_back(static_cast<std::size_t>(p));
      cells.counts.push_back(count);
    }
  }
  check(!cells.counts.empty(), Hint{"give at least one example"},
        "classification_report: there are no examples");
  return cells;
}

ClassificationReport report_of(const Cells& cells, Vec<const index> times, AbsentClasses absent) {
  std::vector<Hits> classes(static_cast<std::size_t>(cells.classes));
  for (index i = 0; i < times.size; ++i) {
    const auto cell = static_cast<std::size_t>(i);
    const std::size_t t = cells.truth[cell], p = cells.predicted[cell];
    classes[t].truth += times[i];
    classes[p].predicted += times[i];
    if (t == p) classes[t].both += times[i];
  }
  ClassificationReport report;
  report.examples =
      detail::set_scores(report, report.classes, classes, absent == AbsentClasses::kAsZero).truth;
  report.accuracy = report.micro.recall;
  return report;
}

}  // namespace

ConfusionMatrix confusion_matrix(Vec<const std::int32_t> truth, Vec<const std::int32_t> predicted,
                                 index classes) {
  constexpr const char* kWhat = "confusion_matrix";
  detail::check_lengths(kWhat, truth.size, predicted.size);
  detail::check_labels(kWhat, "true", truth, classes);
  detail::check_labels(kWhat, "predicted", predicted, classes);
  const index cells = checked_product(classes, classes, "confusion_matrix: classes^2");
  require_memory(fmt::format("the confusion matrix of {} classes", classes),
                 sizeof(index) * static_cast<double>(cells), "use fewer classes");
  ConfusionMatrix confusion{classes, std::vector<index>(static_cast<std::size_t>(cells))};
  for (index n = 0; n < truth.size; ++n) {
    ++confusion.counts[static_cast<std::size_t>(truth[n] * classes + predicted[n])];
  }
  return confusion;
}

ClassificationReport classification_report(const ConfusionMatrix& confusion, AbsentClasses absent) {
  const Cells cells = cells_of(confusion);
  return report_of(cells, cells.counts, absent);
}

ClassificationIntervals classification_intervals(const Context& ctx,
                                                 const ConfusionMatrix& confusion,
                                                 const BootstrapOptions& options,
                                                 AbsentClasses absent) {
  const Cells cells = cells_of(confusion);
  const auto of_resample = [&](Vec<const index> times) { return report_of(cells, times, absent); };
  return detail::report_intervals<ClassificationReportOf>(ctx, cells.counts, of_resample, options);
}

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

MultilabelReport multilabel_report_of(const Patterns& all, Vec<const index> times) {
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
  const Hits sum = detail::set_scores(report, report.labels, labels, true);
  const auto examples = static_cast<double>(report.examples);
  report.subset_accuracy = static_cast<double>(right) / examples;
  report.hamming_loss = static_cast<double>(sum.truth + sum.predicted - 2 * sum.both) /
                        (examples * static_cast<double>(all.labels));
  report.samples = detail::mean_of(all.scores, weights);
  return report;
}

}  // namespace

MultilabelReport multilabel_report(Rows<const std::uint8_t> truth,
                                   Rows<const std::uint8_t> predicted) {
  const Patterns all = patterns_of(truth, predicted);
  return multilabel_report_of(all, all.counts);
}

MultilabelIntervals multilabel_intervals(const Context& ctx, Rows<const std::uint8_t> truth,
                                         Rows<const std::uint8_t> predicted,
                                         const BootstrapOptions& options) {
  const Patterns all = patterns_of(truth, predicted);
  const auto of_resample = [&](Vec<const index> times) { return multilabel_report_of(all, times); };
  return detail::report_intervals<MultilabelReportOf>(ctx, all.counts, of_resample, options);
}

}  // namespace fovea
