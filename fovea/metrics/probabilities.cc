// SPDX-License-Identifier: Apache-2.0
#include "fovea/metrics/probabilities.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>

#include "fovea/base/check.h"
#include "fovea/metrics/inputs.h"
#include "fovea/metrics/sum.h"

namespace fovea {

namespace {

template <class T>
void check_numbers(const char* what, Rows<const T> scores) {
  for (index n = 0; n < scores.rows; ++n) {
    for (index k = 0; k < scores.columns; ++k) {
      if (std::isnan(scores[n][k])) {
        fail(ErrorCode::kOptionValue, Hint{"find out where the model begins to compute NaN"},
             "{}: score {} of example {} is NaN", what, k, n);
      }
    }
  }
}

}  // namespace

template <class T>
std::vector<std::int32_t> most_likely_classes(Rows<const T> scores) {
  check(scores.columns >= 1, "most_likely_classes: scores must have a column for each class");
  check_numbers("most_likely_classes", scores);
  std::vector<std::int32_t> classes;
  classes.reserve(static_cast<std::size_t>(scores.rows));
  for (index n = 0; n < scores.rows; ++n) {
    const T* row = scores[n];
    classes.push_back(static_cast<std::int32_t>(std::max_element(row, row + scores.columns) - row));
  }
  return classes;
}

template <class T>
std::vector<std::uint8_t> labels_above(Rows<const T> probabilities, double threshold) {
  check_numbers("labels_above", probabilities);
  std::vector<std::uint8_t> labels;
  labels.reserve(static_cast<std::size_t>(probabilities.rows * probabilities.columns));
  for (index n = 0; n < probabilities.rows; ++n) {
    for (index k = 0; k < probabilities.columns; ++k) {
      labels.push_back(static_cast<double>(probabilities[n][k]) >= threshold ? 1 : 0);
    }
  }
  return labels;
}

template std::vector<std::int32_t> most_likely_classes(Rows<const float>);
template std::vector<std::int32_t> most_likely_classes(Rows<const double>);
template std::vector<std::uint8_t> labels_above(Rows<const float>, double);
template std::vector<std::uint8_t> labels_above(Rows<const double>, double);

namespace {

constexpr const char* kReliability = "reliability";

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
  check(bins >= 1, "{}: bins must be at least 1; it is {}", kReliability, bins);
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
  detail::check_lengths(kReliability, truth.size, probabilities.rows);
  detail::check_labels(kReliability, "true", truth, probabilities.columns);
  const std::vector<double> all = detail::distributions_of(kReliability, probabilities);
  const Rows<const double> rows(all.data(), probabilities.rows, probabilities.columns);
  return table_of_all(detail::top_label_reliability(rows, truth, bins), truth.size);
}

template <class T>
ReliabilityTable reliability(Vec<const T> probabilities, Vec<const std::uint8_t> truth,
                             index bins) {
  detail::check_lengths(kReliability, truth.size, probabilities.size);
  detail::check_flags(kReliability, "the true label of example", truth);
  const detail::Reliability reliability(detail::probabilities_of(kReliability, probabilities),
                                        {truth.begin(), truth.end()}, bins);
  return table_of_all(reliability, truth.size);
}

template ReliabilityTable reliability(Rows<const float>, Vec<const std::int32_t>, index);
template ReliabilityTable reliability(Rows<const double>, Vec<const std::int32_t>, index);
template ReliabilityTable reliability(Vec<const float>, Vec<const std::uint8_t>, index);
template ReliabilityTable reliability(Vec<const double>, Vec<const std::uint8_t>, index);

namespace {

// The numbers that each example contributes.
struct ClassExamples {
  std::vector<double> losses, briers;
  detail::Reliability reliability;
  std::vector<index> cells;  // each is one
};

double brier_of(const double* p, index K, index truth) {
  detail::Sum sum;
  for (index k = 0; k < K; ++k) {
    const double error = p[k] - (k == truth ? 1 : 0);
    sum.add(error * error);
  }
  return K == 2 ? sum.value() / 2 : sum.value();
}

template <class T>
ClassExamples class_examples_of(Rows<const T> probabilities, Vec<const std::int32_t> truth,
                                index bins) {
  constexpr const char* kWhat = "probability_report";
  constexpr double kEpsilon = std::numeric_limits<T>::epsilon();
  const index N = probabilities.rows, K = probabilities.columns;
  detail::check_lengths(kWhat, truth.size, N);
  detail::check_labels(kWhat, "true", truth, K);
  const std::vector<double> all = detail::distributions_of(kWhat, probabilities);
  std::vector<double> losses, briers;
  for (index n = 0; n < N; ++n) {
    const double* p = all.data() + n * K;
    losses.push_back(-std::log(std::clamp(p[truth[n]], kEpsilon, 1 - kEpsilon)));
    briers.push_back(brier_of(p, K, truth[n]));
  }
  return {std::move(losses), std::move(briers),
          detail::top_label_reliability({all.data(), N, K}, truth, bins),
          std::vector<index>(static_cast<std::size_t>(N), 1)};
}

ProbabilityReport report_of(const ClassExamples& examples, Vec<const index> times) {
  const ReliabilityTable table = examples.reliability.table(times);
  return {.examples = table.examples,
          .log_loss = detail::weighted_mean(examples.losses, times),
          .brier = detail::weighted_mean(examples.briers, times),
          .ece = table.ece};
}

}  // namespace

template <class T>
ProbabilityReport probability_report(Rows<const T> probabilities, Vec<const std::int32_t> truth,
                                     index bins) {
  const ClassExamples examples = class_examples_of(probabilities, truth, bins);
  return report_of(examples, examples.cells);
}

template <class T>
ProbabilityIntervals probability_intervals(const Context& ctx, Rows<const T> probabilities,
                                           Vec<const std::int32_t> truth,
                                           const BootstrapOptions& options, index bins) {
  const ClassExamples examples = class_examples_of(probabilities, truth, bins);
  const auto of_resample = [&](Vec<const index> times) { return report_of(examples, times); };
  return detail::report_intervals<ProbabilityReportOf>(ctx, examples.cells, of_resample, options);
}

template ProbabilityReport probability_report(Rows<const float>, Vec<const std::int32_t>, index);
template ProbabilityReport probability_report(Rows<const double>, Vec<const std::int32_t>, index);
template ProbabilityIntervals probability_intervals(const Context&, Rows<const float>,
                                                    Vec<const std::int32_t>,
                                                    const BootstrapOptions&, index);
template ProbabilityIntervals probability_intervals(const Context&, Rows<const double>,
                                                    Vec<const std::int32_t>,
                                                    const BootstrapOptions&, index);

namespace {

constexpr double kUndefined = std::numeric_limits<double>::quiet_NaN();

// ClassExamples by descending score.
struct Ranking {
  std::vector<double> scores;
  std::vector<std::uint8_t> truth;
  std::vector<index> cells;  // each is one
};

struct Counts {
  index positive = 0, negative = 0;
};

Ranking ranking_of(const char* what, const std::vector<double>& scores,
                   Vec<const std::uint8_t> truth) {
  detail::check_flags(what, "the true label of example", truth);
  std::vector<std::size_t> order(scores.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return scores[a] > scores[b]; });
  Ranking ranking;
  for (const std::size_t n : order) {
    ranking.scores.push_back(scores[n]);
    ranking.truth.push_back(truth[static_cast<index>(n)]);
    ranking.cells.push_back(1);
  }
  return ranking;
}

template <class T>
Ranking ranking_of(const char* what, Vec<const T> scores, Vec<const std::uint8_t> truth) {
  detail::check_lengths(what, truth.size, scores.size);
  return ranking_of(what, detail::finite_values(what, scores), truth);
}

// Calls f(counts) for each distinct score, descending.
template <class F>
void for_each_score(const Ranking& ranking, Vec<const index> times, F&& f) {
  const std::size_t N = ranking.scores.size();
  for (std::size_t begin = 0, end = 0; begin < N; begin = end) {
    Counts counts;
    for (; end < N && ranking.scores[end] == ranking.scores[begin]; ++end) {
      const index n = times[static_cast<index>(end)];
      (ranking.truth[end] != 0 ? counts.positive : counts.negative) += n;
    }
    f(counts);
  }
}

double roc_auc_of(const Ranking& ranking, Vec<const index> times) {
  Counts above;
  double pairs = 0;  // twice the number of those in the right order, exact up to 2^53
  for_each_score(ranking, times, [&](const Counts& counts) {
    pairs += static_cast<double>(counts.negative) *
             static_cast<double>(2 * above.positive + counts.positive);
    above.positive += counts.positive;
    above.negative += counts.negative;
  });
  if (above.positive == 0 || above.negative == 0) return kUndefined;
  return pairs / 2 / static_cast<double>(above.positive) / static_cast<double>(above.negative);
}

double average_precision_of(const Ranking& ranking, Vec<const index> times) {
  Counts above;
  detail::Sum sum;  // of the precisions, each as often as positive examples come in
  for_each_score(ranking, times, [&](const Counts& counts) {
    above.positive += counts.positive;
    above.negative += counts.negative;
    if (counts.positive == 0) return;
    sum.add(static_cast<double>(counts.positive) * static_cast<double>(above.positive) /
            static_cast<double>(above.positive + above.negative));
  });
  return above.positive == 0 ? kUndefined : sum.value() / static_cast<double>(above.positive);
}

struct LabelExamples {
  Ranking ranking;
  std::vector<double> losses, briers;
  detail::Reliability reliability;
};

template <class T>
LabelExamples label_examples_of(Vec<const T> probabilities, Vec<const std::uint8_t> truth,
                                index bins) {
  constexpr const char* kWhat = "binary_report";
  constexpr double kEpsilon = std::numeric_limits<T>::epsilon();
  detail::check_lengths(kWhat, truth.size, probabilities.size);
  Ranking ranking = ranking_of(kWhat, detail::probabilities_of(kWhat, probabilities), truth);
  std::vector<double> losses, briers;
  for (std::size_t n = 0; n < ranking.scores.size(); ++n) {
    const double p = ranking.truth[n] != 0 ? ranking.scores[n] : 1 - ranking.scores[n];
    losses.push_back(-std::log(std::clamp(p, kEpsilon, 1 - kEpsilon)));
    briers.push_back((1 - p) * (1 - p));
  }
  detail::Reliability reliability(ranking.scores, ranking.truth, bins);
  return {std::move(ranking), std::move(losses), std::move(briers), std::move(reliability)};
}

BinaryReport report_of(const LabelExamples& examples, Vec<const index> times) {
  const Ranking& ranking = examples.ranking;
  const ReliabilityTable table = examples.reliability.table(times);
  BinaryReport report{.examples = table.examples};
  for (std::size_t n = 0; n < ranking.truth.size(); ++n) {
    report.positives += ranking.truth[n] * times[static_cast<index>(n)];
  }
  report.roc_auc = roc_auc_of(ranking, times);
  report.average_precision = average_precision_of(ranking, times);
  report.log_loss = detail::weighted_mean(examples.losses, times);
  report.brier = detail::weighted_mean(examples.briers, times);
  report.ece = table.ece;
  return report;
}

}  // namespace

template <class T>
double roc_auc(Vec<const T> scores, Vec<const std::uint8_t> truth) {
  const Ranking ranking = ranking_of("roc_auc", scores, truth);
  return roc_auc_of(ranking, ranking.cells);
}

template <class T>
double average_precision(Vec<const T> scores, Vec<const std::uint8_t> truth) {
  const Ranking ranking = ranking_of("average_precision", scores, truth);
  return average_precision_of(ranking, ranking.cells);
}

template <class T>
BinaryReport binary_report(Vec<const T> probabilities, Vec<const std::uint8_t> truth, index bins) {
  const LabelExamples examples = label_examples_of(probabilities, truth, bins);
  return report_of(examples, examples.ranking.cells);
}

template <class T>
BinaryIntervals binary_intervals(const Context& ctx, Vec<const T> probabilities,
                                 Vec<const std::uint8_t> truth, const BootstrapOptions& options,
                                 index bins) {
  const LabelExamples examples = label_examples_of(probabilities, truth, bins);
  const auto of_resample = [&](Vec<const index> times) { return report_of(examples, times); };
  return detail::report_intervals<BinaryReportOf>(ctx, examples.ranking.cells, of_resample,
                                                  options);
}

template double roc_auc(Vec<const float>, Vec<const std::uint8_t>);
template double roc_auc(Vec<const double>, Vec<const std::uint8_t>);
template double average_precision(Vec<const float>, Vec<const std::uint8_t>);
template double average_precision(Vec<const double>, Vec<const std::uint8_t>);
template BinaryReport binary_report(Vec<const float>, Vec<const std::uint8_t>, index);
template BinaryReport binary_report(Vec<const double>, Vec<const std::uint8_t>, index);
template BinaryIntervals binary_intervals(const Context&, Vec<const float>, Vec<const std::uint8_t>,
                                          const BootstrapOptions&, index);
template BinaryIntervals binary_intervals(const Context&, Vec<const double>,
                                          Vec<const std::uint8_t>, const BootstrapOptions&, index);

std::vector<PrecisionRecallPoint> precision_recall_curve(std::span<const float> probabilities,
                                                         std::span<const std::uint8_t> truth,
                                                         index most) {
  check(probabilities.size() == truth.size(), "precision_recall_curve: {} probabilities of {}",
        probabilities.size(), truth.size());
  std::vector<std::size_t> order(truth.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::sort(order.begin(), order.end(),
            [&](std::size_t a, std::size_t b) { return probabilities[a] > probabilities[b]; });
  const double all = std::accumulate(truth.begin(), truth.end(), 0.0);
  std::vector<PrecisionRecallPoint> points;
  double hits = 0;
  for (std::size_t n = 0; n < order.size() && all > 0; ++n) {
    hits += truth[order[n]];
    const bool is_last = n + 1 == order.size();
    if (!is_last && probabilities[order[n + 1]] == probabilities[order[n]]) continue;
    const PrecisionRecallPoint here{hits / all, hits / static_cast<double>(n + 1),
                                    double{probabilities[order[n]]}};
    // Recall in steps: the first point of each.
    const auto step = [&](double recall) { return std::floor(recall * static_cast<double>(most)); };
    const bool is_new = points.empty() || step(here.recall) > step(points.back().recall);
    if (is_new) points.push_back(here);
    // Behind the last hit precision only falls.
    if (hits == all) {
      if (!is_new) points.push_back(here);
      break;
    }
  }
  return points;
}

}  // namespace fovea
