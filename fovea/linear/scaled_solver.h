// SPDX-License-Identifier: Apache-2.0
// Solves one logistic problem of many columns in float32.
#pragma once

#include "fovea/linear/solver.h"

namespace fovea {

/// As solve_logistic(), for one problem, with float32 weights and a copy of the rows that is
/// multiplied with the scales: what is read at random is a quarter as large, so more of it stays in
/// the caches. Margins are exact to about 1e-6. The weights that are returned are float64.
bool solve_scaled(const LinearProblem& problem, const SolverOptions& options,
                  LinearSolution& solution);

/// Bytes of the copy, for rows with so many values.
inline double scaled_bytes(double values) { return values * sizeof(float); }

}  // namespace fovea
