// SPDX-License-Identifier: Apache-2.0
#include "fovea/metrics/bootstrap.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numbers>
#include <numeric>

#include "fovea/base/check.h"
#include "fovea/base/machine.h"
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

namespace fovea::detail {

namespace {

// log k!. Not std::lgamma, which writes a global variable. The error of the series is below 1e-14.
double log_factorial(double k) {
  if (k < 12) {
    double product = 1;
    for (double i = 2; i <= k; ++i) product *= i;
    return std::log(product);
  }
  const double x = k + 1, y = 1 / (x * x);
  const double series = (1.0 / 12 - y * (1.0 / 360 - y * (1.0 / 1260 - y / 1680))) / x;
  return (x - 0.5) * std::log(x) - x + 0.5 * std::log(2 * std::numbers::pi) + series;
}

// Adds up probabilities from 0 successes on; n p is so small that (1 - p)^n is far from underflow.
index by_inversion(Random& random, index n, double p) {
  const double odds = p / (1 - p), trials = static_cast<double>(n);
  double left = random.uniform();
  double probability = std::exp(trials * std::log1p(-p));
  index k = 0;
  while (left >= probability && probability > 0 && k < n) {
    left -= probability;
    ++k;
    probability *= odds * (trials + 1 - static_cast<double>(k)) / static_cast<double>(k);
  }
  return k;
}

// Hörmann's names. p <= 1/2 and n p >= 10.
index by_rejection(Random& random, index trials, double p) {
  const double n = static_cast<double>(trials), spq = std::sqrt(n * p * (1 - p));
  const double b = 1.15 + 2.53 * spq, a = -0.0873 + 0.0248 * b + 0.01 * p;
  const double v_r = 0.92 - 4.2 / b, alpha = (2.83 + 5.1 / b) * spq;
  const double m = std::floor((n + 1) * p), log_odds = std::log(p / (1 - p));
  const double h = log_factorial(m) + log_factorial(n - m);
  for (;;) {
    const double u = random.uniform() - 0.5, v = 1 - random.uniform();
    const double us = 0.5 - std::abs(u);
    const double k = std::floor((2 * a / us + b) * u + n * p + 0.5);
    if (!(k >= 0 && k <= n)) continue;
    if (us >= 0.07 && v <= v_r) return static_cast<index>(k);
    const double height = std::log(v * alpha / (a / (us * us) + b));
    if (height <= h - log_factorial(k) - log_factorial(n - k) + (k - m) * log_odds) {
      return static_cast<index>(k);
    }
  }
}

}  // namespace

std::uint32_t uniform_below(Random& random, std::uint32_t n) {
  std::uint64_t product = std::uint64_t{random.next_u32()} * n;
  if (static_cast<std::uint32_t>(product) < n) {
    const std::uint32_t threshold = (0u - n) % n;
    while (static_cast<std::uint32_t>(product) < threshold) {
      product = std::uint64_t{random.next_u32()} * n;
    }
  }
  return static_cast<std::uint32_t>(product >> 32);
}

index binomial(Random& random, index n, double p) {
  constexpr double kFew = 10;
  if (p > 0.5) return n - binomial(random, n, 1 - p);
  if (n == 0 || p <= 0) return 0;
  return static_cast<double>(n) * p < kFew ? by_inversion(random, n, p)
                                           : by_rejection(random, n, p);
}

Multinomial::Multinomial(Vec<const index> cells) : cells_(cells) {
  for (const index count : cells) examples_ += count;
  // A binomial number takes about as long as this many uniform ones. The choice follows from the
  // cells alone, so that the same examples always give the same resamples.
  constexpr index kDrawsPerBinomial = 16;
  const auto used = cells.size - std::count(cells.begin(), cells.end(), 0);
  const bool drawn_one_by_one = examples_ < std::numeric_limits<std::uint32_t>::max() &&
                                examples_ <= kDrawsPerBinomial * used;
  if (!drawn_one_by_one) return;
  cell_of_.reserve(static_cast<std::size_t>(examples_));
  for (index i = 0; i < cells.size; ++i) {
    cell_of_.insert(cell_of_.end(), static_cast<std::size_t>(cells[i]),
                    static_cast<std::uint32_t>(i));
  }
}

void Multinomial::draw(Random& random, Vec<index> times) const {
  cell_of_.empty() ? draw_cells(random, times) : draw_examples(random, times);
}

void Multinomial::draw_examples(Random& random, Vec<index> times) const {
  std::fill(times.begin(), times.end(), 0);
  const auto n = static_cast<std::uint32_t>(examples_);
  for (std::uint32_t i = 0; i < n; ++i) ++times[cell_of_[uniform_below(random, n)]];
}

// Among the draws that are left, the number of the next cell's is binomial.
void Multinomial::draw_cells(Random& random, Vec<index> times) const {
  index draws = examples_, examples = examples_;
  for (index i = 0; i < cells_.size; ++i) {
    const bool last = cells_[i] == examples;
    const double p = last ? 1 : static_cast<double>(cells_[i]) / static_cast<double>(examples);
    times[i] = cells_[i] == 0 ? 0 : last ? draws : binomial(random, draws, p);
    draws -= times[i];
    examples -= cells_[i];
  }
}

}  // namespace fovea::detail

namespace fovea {

namespace {

// The .975 quantile of Student's t with n degrees of freedom.
double quantile_of_t(std::size_t n) {
  constexpr std::array<double, 12> kFew = {12.706205, 4.302653, 3.182446, 2.776445,
                                           2.570582,  2.446912, 2.364624, 2.306004,
                                           2.262157,  2.228139, 2.200985, 2.178813};
  if (n <= kFew.size()) return kFew[n - 1];
  // Cornish & Fisher's series around the normal quantile.
  constexpr double z = 1.959963985;
  const auto v = static_cast<double>(n);
  const double z3 = z * z * z, z5 = z3 * z * z, z7 = z5 * z * z;
  return z + (z3 + z) / (4 * v) + (5 * z5 + 16 * z3 + 3 * z) / (96 * v * v) +
         (3 * z7 + 19 * z5 + 17 * z3 - 15 * z) / (384 * v * v * v);
}

}  // namespace

Interval mean_interval(std::span<const double> values) {
  check(!values.empty(), "mean_interval: no values");
  const auto n = static_cast<double>(values.size());
  const double mean = std::accumulate(values.begin(), values.end(), 0.0) / n;
  if (values.size() == 1) {
    constexpr double kNone = std::numeric_limits<double>::quiet_NaN();
    return {mean, kNone, kNone};
  }
  double squares = 0;
  for (const double value : values) squares += (value - mean) * (value - mean);
  const double half = quantile_of_t(values.size() - 1) * std::sqrt(squares / (n - 1) / n);
  return {mean, mean - half, mean + half};
}

}  // namespace fovea
