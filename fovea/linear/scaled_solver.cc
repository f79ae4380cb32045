// SPDX-License-Identifier: Apache-2.0
#include "fovea/linear/scaled_solver.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <vector>

#include "fovea/base/random.h"
#include "fovea/data/epoch_order.h"
#include "fovea/linear/logistic_step.h"

namespace fovea {

namespace {

// The rows that are used, times the scales: n has values[starts[n]] ..
class ScaledRows {
 public:
  explicit ScaledRows(const LinearProblem& p) : p_(p) {
    if (p.scales.empty()) return;
    std::size_t size = 0;
    for (const std::int32_t i : p.used) size += p.rows.row(i).values.size();
    values_.reserve(size);
    starts_.reserve(p.used.size());
    for (const std::int32_t i : p.used) {
      const SparseRow row = p.rows.row(i);
      starts_.push_back(values_.size());
      for (std::size_t k = 0; k < row.columns.size(); ++k) {
        values_.push_back(row.values[k] * p.scales[static_cast<std::size_t>(row.columns[k])]);
      }
    }
  }

  SparseRow row(std::size_t n) const {
    const SparseRow row = p_.rows.row(p_.used[n]);
    if (p_.scales.empty()) return row;
    return {row.columns, std::span(values_).subspan(starts_[n], row.columns.size())};
  }

 private:
  const LinearProblem& p_;
  std::vector<float> values_;
  std::vector<std::size_t> starts_;
};

// Four sums by turns, so that no addition waits for the one before.
double product(const SparseRow& row, const float* weights) {
  constexpr std::size_t kSums = 4;
  std::array<float, kSums> sums{};
  const std::int32_t* const columns = row.columns.data();
  const float* const values = row.values.data();
  const std::size_t size = row.columns.size(), whole = size - size % kSums;
  for (std::size_t k = 0; k < whole; k += kSums) {
    for (std::size_t s = 0; s < kSums; ++s) sums[s] += weights[columns[k + s]] * values[k + s];
  }
  for (std::size_t k = whole; k < size; ++k) sums[k - whole] += weights[columns[k]] * values[k];
  return double{(sums[0] + sums[1]) + (sums[2] + sums[3])};
}

void add(const SparseRow& row, float step, float* weights) {
  for (std::size_t k = 0; k < row.columns.size(); ++k) {
    weights[row.columns[k]] += step * row.values[k];
  }
}

// Whether the duals of the solution are those of another c, in proportion to which they begin.
bool goes_on(const LinearProblem& p, const LinearSolution& s) {
  return s.c > 0 && s.lanes == 1 && s.dual.size() == 2 * p.used.size();
}

void begin_duals(const LinearProblem& p, LinearSolution& s) {
  if (goes_on(p, s)) {
    for (double& dual : s.dual) dual *= p.c / s.c;
  } else {
    s.dual.resize(2 * p.used.size());
    for (std::size_t n = 0; n < p.used.size(); ++n) {
      const double cost = cost_of(p, n);
      s.dual[2 * n] = first_dual(cost);
      s.dual[2 * n + 1] = cost - s.dual[2 * n];
    }
  }
  s.c = p.c;
  s.lanes = 1;
}

}  // namespace

bool solve_scaled(const LinearProblem& p, const SolverOptions& options, LinearSolution& s) {
  const ScaledRows rows(p);
  begin_duals(p, s);
  std::vector<float> weights(static_cast<std::size_t>(p.columns)), squares, y;
  for (std::size_t n = 0; n < p.used.size(); ++n) {
    const SparseRow row = rows.row(n);
    y.push_back(p.y[static_cast<std::size_t>(p.used[n])]);
    add(row, y[n] * static_cast<float>(s.dual[2 * n]), weights.data());
    squares.push_back(
        std::inner_product(row.values.begin(), row.values.end(), row.values.begin(), 0.0F));
  }
  std::vector<index> order(p.used.size());
  std::iota(order.begin(), order.end(), index{0});
  s.converged = false;
  for (s.passes = 0; s.passes < options.most_passes && !s.converged; ++s.passes) {
    if (options.interrupted && options.interrupted()) return false;
    Random random(options.seed, RandomUse::kBatches, static_cast<std::uint64_t>(s.passes));
    shuffle(order, random);
    double farthest = 0;
    for (const index next : order) {
      const auto n = static_cast<std::size_t>(next);
      const SparseRow row = rows.row(n);
      const double slope = double{y[n]} * (p.offset + product(row, weights.data()));
      const DualStep step =
          step_dual(slope, double{squares[n]}, cost_of(p, n), s.dual[2 * n], s.dual[2 * n + 1]);
      farthest = std::max(farthest, step.far);
      if (step.grown != 0) add(row, y[n] * static_cast<float>(step.grown), weights.data());
    }
    s.converged = farthest <= options.tolerance;
  }
  s.weights.assign(weights.begin(), weights.end());
  for (std::size_t f = 0; f < p.scales.size(); ++f) s.weights[f] *= double{p.scales[f]};
  return true;
}

}  // namespace fovea
