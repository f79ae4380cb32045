// SPDX-License-Identifier: Apache-2.0
// Two convex problems, solved by dual coordinate descent (Hsieh et al. 2008, "A dual coordinate
// descent method for large-scale linear SVM"; Yu, Huang & Lin 2011 for the logistic loss).
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "fovea/linear/ngrams.h"

namespace fovea {

/// minimise over w  1/2 |w|^2 + sum_i c_i loss(y_i, offset + (s * w) x_i), the sum over `used`
/// rows. s scales the columns.
struct LinearProblem {
  const SparseRows& rows;
  index columns = 0;
  std::span<const std::int32_t> used = {};  ///< rows, in any order
  std::span<const float> y = {};            ///< [rows]: 1 or -1, or numbers
  std::span<const double> costs = {};       ///< [rows] c_i / c; empty: all 1
  std::span<const float> scales = {};       ///< [columns] s; empty: all 1
  double offset = 0;
  double c = 1;
};

/// c_i of the n-th row that is used.
inline double cost_of(const LinearProblem& p, std::size_t n) {
  return p.c * (p.costs.empty() ? 1 : p.costs[static_cast<std::size_t>(p.used[n])]);
}

struct SolverOptions {
  double tolerance = 0.01;
  int most_passes = 300;
  std::uint64_t seed = 1;                  ///< of the order of the rows in each pass
  std::function<bool()> interrupted = {};  ///< asked once in each pass
};

/// Problems that are solved side by side have a lane each: 1, 2, 4 or 8 of them, the last of which
/// may be idle.
inline constexpr index kMostLanes = 8;

/// The point that was reached. A solver goes on from there, for the same problems with another c.
struct LinearSolution {
  index lanes = 1;
  std::vector<double> weights;  ///< [columns, lanes] s * w: what is multiplied with a row as it is
  std::vector<double> dual;     ///< logistic: [used, 2, lanes], a and c_i - a; squares: [used]
  double c = 0;                 ///< 0: none yet
  int passes = 0;               ///< of the last call
  bool converged = false;       ///< all of them
};

/// values[p] = what the weights of problem p make of the row, for the first values.size() of them.
void multiply(const SparseRow& row, const LinearSolution& solution, std::span<double> values);

/// loss(y, z) = log(1 + exp(-y z)). Ends when no row's margin is farther than `tolerance` from what
/// its dual variable says. Returns false if it was interrupted.
bool solve_logistic(const LinearProblem& problem, const SolverOptions& options,
                    LinearSolution& solution);

/// Up to kMostLanes problems with the same rows, used rows and c: each ends with the bits that it
/// has alone, but a row is read once for all of them.
bool solve_logistic(std::span<const LinearProblem> problems, const SolverOptions& options,
                    LinearSolution& solution);

/// loss(y, z) = (y - z)^2. Ends when no step of a pass changed its own prediction by more than
/// `tolerance`. Returns false if it was interrupted.
bool solve_squares(const LinearProblem& problem, const SolverOptions& options,
                   LinearSolution& solution);

}  // namespace fovea
