// SPDX-License-Identifier: Apache-2.0
#include "fovea/metrics/binary.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "fovea/metrics/inputs.h"
#include "fovea/metrics/sum.h"

namespace fovea {

namespace {

constexpr double kUndefined = std::numeric_limits<double>::quiet_NaN();

// Examples by descending score.
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

struct Examples {
  Ranking ranking;
  std::vector<double> losses, briers;
  detail::Reliability reliability;
};

template <class T>
Examples examples_of(Vec<const T> probabilities, Vec<const std::uint8_t> truth, index bins) {
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

BinaryReport report_of(const Examples& examples, Vec<const index> times) {
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
  const Examples examples = examples_of(probabilities, truth, bins);
  return report_of(examples, examples.ranking.cells);
}

template <class T>
BinaryIntervals binary_intervals(const Context& ctx, Vec<const T> probabilities,
                                 Vec<const std::uint8_t> truth, const BootstrapOptions& options,
                                 index bins) {
  const Examples examples = examples_of(probabilities, truth, bins);
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

}  // namespace fovea
