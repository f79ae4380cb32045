// SPDX-License-Identifier: Apache-2.0
// How well what belongs to a query is found among all candidates.
#pragma once

#include "fovea/metrics/bootstrap.h"
#include "fovea/metrics/scores.h"

namespace fovea {

/// By the rank, from 1, of the one candidate that belongs to each query. Number is double, or
/// Interval.
template <class Number>
struct RankingReportOf {
  index queries = 0;
  Number mrr = {};  ///< mean of 1 / rank: the mean reciprocal rank (Voorhees 1999, TREC-8)
  /// Share of the queries with a rank of at most 1, 5, 10.
  Number recall_at_1 = {}, recall_at_5 = {}, recall_at_10 = {};

  /// Calls f(NumberName, number) for "mrr", "recall_at_1", "recall_at_5", "recall_at_10".
  template <class Self, class F>
  static void visit_numbers(Self&& self, F&& f) {
    f(NumberName{"mrr"}, self.mrr);
    f(NumberName{"recall_at_1"}, self.recall_at_1);
    f(NumberName{"recall_at_5"}, self.recall_at_5);
    f(NumberName{"recall_at_10"}, self.recall_at_10);
  }
  template <class Other>
  void take_sizes(const RankingReportOf<Other>& other) {
    queries = other.queries;
  }
};
using RankingReport = RankingReportOf<double>;
using RankingIntervals = RankingReportOf<Interval>;

/// ranks [N], each at least 1. Throws Error(kShape) without queries, Error(kOptionValue) for a rank
/// below 1.
RankingReport ranking_report(Vec<const index> ranks);

/// Bootstrap intervals of all numbers of the report.
RankingIntervals ranking_intervals(const Context& ctx, Vec<const index> ranks,
                                   const BootstrapOptions& options = {});

}  // namespace fovea
