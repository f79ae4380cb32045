// SPDX-License-Identifier: Apache-2.0
#include "fovea/linear/wide_solver.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "fovea/base/random.h"
#include "fovea/data/epoch_order.h"

namespace fovea {

namespace {

// The log-odds of a dual variable from which a solver starts. Its 2e-9 of the cost are less than
// what float32 can add to a weight, so weights start from 0.
constexpr float kFirst = -20;

void take_scales(std::span<const LinearProblem> problems, WideSolution& s) {
  const auto columns = static_cast<std::size_t>(problems.front().columns);
  s.stride = problems.front().scales.empty() ? 1 : 2;
  s.lines.assign(columns * static_cast<std::size_t>(s.stride), WideLine{});
  if (s.stride == 1) return;
  for (std::size_t f = 0; f < columns; ++f) {
    WideLine& squares = s.lines[2 * f + 1];
    for (std::size_t l = 0; l < problems.size(); ++l) {
      squares.lane[l] = problems[l].scales[f] * problems[l].scales[f];
    }
  }
}

// Row n of those that are used, with its dual variables; of a fresh start where there are none.
WideRow row_of(std::span<const LinearProblem> problems, std::size_t n, const WideKernels& kernels,
               const WideSolution& s) {
  const LinearProblem& first = problems.front();
  const auto i = static_cast<std::size_t>(first.used[n]);
  WideRow row;
  for (std::size_t l = 0; l < WideLine::kLanes; ++l) row.dual.lane[l] = kFirst;
  if (!s.dual.empty()) row.dual = s.dual[n];
  for (std::size_t l = 0; l < problems.size(); ++l) {
    const LinearProblem& p = problems[l];
    row.y.lane[l] = p.y[i];
    row.cost.lane[l] = static_cast<float>(p.c * (p.costs.empty() ? 1 : p.costs[i]));
  }
  kernels.add_squares(first.rows.row(first.used[n]), s.lines.data(), s.stride, row.square);
  return row;
}

// The weights that follow from dual variables.
void add_duals(const LinearProblem& p, std::span<const WideRow> rows, const WideKernels& kernels,
               WideSolution& s) {
  for (std::size_t n = 0; n < rows.size(); ++n) {
    WideLine steps;
    for (std::size_t l = 0; l < WideLine::kLanes; ++l) {
      const float share = 1 / (1 + std::exp(-rows[n].dual.lane[l]));
      steps.lane[l] = rows[n].y.lane[l] * rows[n].cost.lane[l] * share;
    }
    kernels.add_row(p.rows.row(p.used[n]), steps, s.stride, s.lines.data());
  }
}

}  // namespace

void multiply(const SparseRow& row, const WideSolution& solution, std::span<double> values) {
  WideLine sums;
  wide_kernels().add_products(row, solution.lines.data(), solution.stride, sums);
  std::copy_n(sums.lane, values.size(), values.begin());
}

bool solve_logistic(std::span<const LinearProblem> problems, const SolverOptions& options,
                    WideSolution& s) {
  const WideKernels kernels = wide_kernels();
  const LinearProblem& p = problems.front();
  take_scales(problems, s);
  std::vector<WideRow> rows;
  rows.reserve(p.used.size());
  for (std::size_t n = 0; n < p.used.size(); ++n) rows.push_back(row_of(problems, n, kernels, s));
  if (!s.dual.empty()) add_duals(p, rows, kernels, s);
  WideLine offsets, active;
  for (std::size_t l = 0; l < problems.size(); ++l) {
    offsets.lane[l] = static_cast<float>(problems[l].offset);
    active.lane[l] = 1;
  }
  std::vector<index> order(rows.size());
  std::iota(order.begin(), order.end(), index{0});
  s.converged = false;
  for (s.passes = 0; s.passes < options.most_passes && !s.converged; ++s.passes) {
    if (options.interrupted && options.interrupted()) return false;
    Random random(options.seed, RandomUse::kBatches, static_cast<std::uint64_t>(s.passes));
    shuffle(order, random);
    WideLine farthest;
    for (const index n : order) {
      const SparseRow row = p.rows.row(p.used[static_cast<std::size_t>(n)]);
      WideLine logits = offsets, steps, gaps;
      kernels.add_products(row, s.lines.data(), s.stride, logits);
      kernels.move(logits, active, rows[static_cast<std::size_t>(n)], steps, gaps);
      kernels.add_row(row, steps, s.stride, s.lines.data());
      for (std::size_t l = 0; l < WideLine::kLanes; ++l) {
        farthest.lane[l] = std::max(farthest.lane[l], gaps.lane[l]);
      }
    }
    s.converged = true;
    for (std::size_t l = 0; l < problems.size(); ++l) {
      if (double{farthest.lane[l]} <= options.tolerance / 4) active.lane[l] = 0;
      s.converged = s.converged && active.lane[l] == 0;
    }
  }
  s.dual.clear();
  for (const WideRow& row : rows) s.dual.push_back(row.dual);
  return true;
}

}  // namespace fovea
