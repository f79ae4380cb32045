// SPDX-License-Identifier: Apache-2.0
#include "fovea/metrics/probability.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "fovea/metrics/inputs.h"
#include "fovea/metrics/sum.h"

namespace fovea {

namespace {

// The numbers that each example contributes.
struct Examples {
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
Examples examples_of(Rows<const T> probabilities, Vec<const std::int32_t> truth, index bins) {
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

ProbabilityReport report_of(const Examples& examples, Vec<const index> times) {
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
  const Examples examples = examples_of(probabilities, truth, bins);
  return report_of(examples, examples.cells);
}

template <class T>
ProbabilityIntervals probability_intervals(const Context& ctx, Rows<const T> probabilities,
                                           Vec<const std::int32_t> truth,
                                           const BootstrapOptions& options, index bins) {
  const Examples examples = examples_of(probabilities, truth, bins);
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

}  // namespace fovea
