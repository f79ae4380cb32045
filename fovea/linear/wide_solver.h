// SPDX-License-Identifier: Apache-2.0
// The logistic problem of solver.h for many labels: sixteen side by side, in float32.
#pragma once

#include <span>
#include <vector>

#include "fovea/linear/side_by_side.h"
#include "fovea/linear/solver.h"

namespace fovea {

inline constexpr index kWideLanes = static_cast<index>(WideLine::kLanes);

/// The point that was reached. A solver goes on from there, for the same problems with another c.
struct WideSolution {
  index stride = 1;  ///< lines a column: of weights, and of squared scales if there are any
  std::vector<WideLine> lines;  ///< [columns, stride] s * w, and s^2
  std::vector<WideLine> dual;   ///< [used] as WideRow::dual, in the order of `used`
  int passes = 0;               ///< of the last call
  bool converged = false;       ///< all of them

  float weight(index column, std::size_t problem) const {
    return lines[static_cast<std::size_t>(column * stride)].lane[problem];
  }
};

/// values[p] = what the weights of problem p make of the row, for the first values.size() of them.
void multiply(const SparseRow& row, const WideSolution& solution, std::span<double> values);

/// Solves up to kWideLanes problems with the same rows, used rows and c, all or none with scales:
/// each ends with the bits that it has alone. Ends when no probability of a row is farther than
/// tolerance / 4 from what its dual variable says, which a logit that is farther by the tolerance
/// makes at most. Returns false if it was interrupted.
bool solve_logistic(std::span<const LinearProblem> problems, const SolverOptions& options,
                    WideSolution& solution);

}  // namespace fovea
