// SPDX-License-Identifier: Apache-2.0
#include "fovea/metrics/classification.h"

#include "fovea/base/check.h"
#include "fovea/base/machine.h"
#include "fovea/metrics/inputs.h"

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
  const Hits all = detail::sum_of(classes);
  ClassificationReport report{.examples = all.truth};
  std::vector<double> occurs, support;
  for (const Hits& hits : classes) {
    const bool counts = absent == AbsentClasses::kAsZero || hits.truth + hits.predicted > 0;
    report.classes.push_back(detail::scores_of(hits));
    report.support.push_back(hits.truth);
    report.predicted.push_back(hits.predicted);
    occurs.push_back(counts ? 1 : 0);
    support.push_back(static_cast<double>(hits.truth));
  }
  report.micro = detail::scores_of(all);
  report.accuracy = report.micro.recall;
  report.macro = detail::mean_of(report.classes, occurs);
  report.weighted = detail::mean_of(report.classes, support);
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

}  // namespace fovea
