// SPDX-License-Identifier: Apache-2.0
#include "fovea/metrics/ranking.h"

#include <algorithm>
#include <vector>

#include "fovea/base/check.h"

namespace fovea {

namespace {

void check_ranks(Vec<const index> ranks) {
  check(!ranks.empty(), "ranking_report: there are no queries");
  for (const index rank : ranks) {
    if (rank < 1) fail(ErrorCode::kOptionValue, "ranking_report: ranks begin at 1; got {}", rank);
  }
}

// Query i counts times[i] times.
RankingReport report_of(Vec<const index> ranks, Vec<const index> times) {
  RankingReport report{.queries = ranks.size};
  double queries = 0;
  for (index i = 0; i < ranks.size; ++i) {
    const auto count = static_cast<double>(times[i]);
    queries += count;
    report.mrr += count / static_cast<double>(ranks[i]);
    report.recall_at_1 += ranks[i] <= 1 ? count : 0;
    report.recall_at_5 += ranks[i] <= 5 ? count : 0;
    report.recall_at_10 += ranks[i] <= 10 ? count : 0;
  }
  RankingReport::visit_numbers(report, [&](auto&&, double& number) { number /= queries; });
  return report;
}

}  // namespace

RankingReport ranking_report(Vec<const index> ranks) {
  check_ranks(ranks);
  const std::vector<index> once(static_cast<std::size_t>(ranks.size), 1);
  return report_of(ranks, once);
}

RankingIntervals ranking_intervals(const Context& ctx, Vec<const index> ranks,
                                   const BootstrapOptions& options) {
  check_ranks(ranks);
  const std::vector<index> once(static_cast<std::size_t>(ranks.size), 1);
  return detail::report_intervals<RankingReportOf>(
      ctx, once, [&](Vec<const index> times) { return report_of(ranks, times); }, options);
}

}  // namespace fovea
