// SPDX-License-Identifier: Apache-2.0
#include "fovea/metrics/bootstrap.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "fovea/base/check.h"
#include "fovea/base/machine.h"
#include "fovea/metrics/multinomial.h"
#include "fovea/metrics/sum.h"

namespace fovea {

namespace {

double quantile(const std::vector<double>& sorted, double share) {
  const double place = share * static_cast<double>(sorted.size() - 1);
  const auto below = std::min(static_cast<std::size_t>(place), sorted.size() - 1);
  const double low = sorted[below], high = sorted[std::min(below + 1, sorted.size() - 1)];
  return low == high ? low : low + (place - static_cast<double>(below)) * (high - low);
}

}  // namespace

Interval interval_of(double value, Vec<const double> resamples, double confidence) {
  std::vector<double> defined;
  std::copy_if(resamples.begin(), resamples.end(), std::back_inserter(defined),
               [](double x) { return !std::isnan(x); });
  const auto undefined = resamples.size - static_cast<index>(defined.size());
  constexpr double kNone = std::numeric_limits<double>::quiet_NaN();
  if (defined.empty()) return {value, kNone, kNone, undefined};
  std::sort(defined.begin(), defined.end());
  return {value, quantile(defined, (1 - confidence) / 2), quantile(defined, (1 + confidence) / 2),
          undefined};
}

std::vector<double> resampled_numbers(const Context& ctx, Vec<const index> cells, index count,
                                      const ResampleNumbers& numbers,
                                      const BootstrapOptions& options) {
  const index R = options.resamples;
  if (R < 1) fail(ErrorCode::kOptionValue, "bootstrap: resamples must be at least 1; it is {}", R);
  if (!(options.confidence > 0 && options.confidence < 1)) {
    fail(ErrorCode::kOptionValue, "bootstrap: confidence must be between 0 and 1; it is {}",
         options.confidence);
  }
  for (const index cell : cells) check(cell >= 0, "bootstrap: a cell holds {} examples", cell);
  const detail::Multinomial examples(cells);
  check(examples.examples() > 0, Hint{"give at least one example"},
        "bootstrap: there are no examples");
  const index total = checked_product(R, count, "bootstrap: resamples times numbers");
  require_memory(fmt::format("the bootstrap of {} numbers", count),
                 sizeof(double) * static_cast<double>(total), "use fewer resamples or classes");
  std::vector<double> values(static_cast<std::size_t>(total));
  const double work = 8.0 * static_cast<double>(std::min(examples.examples(), 100 * cells.size));
  ctx.for_ranges(R, work, [&](index begin, index end) {
    std::vector<index> times(static_cast<std::size_t>(cells.size));
    std::vector<double> row(static_cast<std::size_t>(count));
    for (index r = begin; r < end; ++r) {
      Random random(options.seed, RandomUse::kBootstrap, static_cast<std::uint64_t>(r));
      examples.draw(random, times);
      numbers(times, row);
      for (index i = 0; i < count; ++i) {
        values[static_cast<std::size_t>(i * R + r)] = row[static_cast<std::size_t>(i)];
      }
    }
  });
  return values;
}

std::vector<Interval> bootstrap(const Context& ctx, Vec<const index> cells, index count,
                                const ResampleNumbers& numbers, const BootstrapOptions& options) {
  std::vector<double> values = resampled_numbers(ctx, cells, count, numbers, options);
  const index R = options.resamples;
  std::vector<double> whole(static_cast<std::size_t>(count));
  numbers(cells, whole);
  std::vector<Interval> intervals(static_cast<std::size_t>(count));
  ctx.for_ranges(count, 32.0 * static_cast<double>(R), [&](index begin, index end) {
    for (index i = begin; i < end; ++i) {
      const auto at = static_cast<std::size_t>(i);
      intervals[at] = interval_of(whole[at], {values.data() + i * R, R}, options.confidence);
    }
  });
  return intervals;
}

Interval bootstrap_mean(const Context& ctx, Vec<const double> values,
                        const BootstrapOptions& options) {
  const std::vector<index> cells(static_cast<std::size_t>(values.size), 1);
  const auto mean = [&](Vec<const index> times, Vec<double> out) {
    detail::Sum sum;
    for (index n = 0; n < values.size; ++n) sum.add(static_cast<double>(times[n]) * values[n]);
    out[0] = sum.value() / static_cast<double>(values.size);
  };
  return bootstrap(ctx, cells, 1, mean, options).front();
}

}  // namespace fovea
