// SPDX-License-Identifier: Apache-2.0
// Small problems for the solvers.
#pragma once

#include <algorithm>
#include <vector>

#include "fovea/base/random.h"
#include "fovea/linear/solver.h"

namespace fovea {

inline constexpr index kColumns = 6;

/// Rows of random values, of which about half are 0, with what is wanted of each.
struct Drawn {
  SparseRows rows;
  std::vector<float> y;
  std::vector<double> costs;
  std::vector<float> scales;
  std::vector<std::int32_t> used;

  LinearProblem problem(double c) const {
    return {.rows = rows,
            .columns = kColumns,
            .used = used,
            .y = y,
            .costs = costs,
            .scales = scales,
            .offset = 0.3,
            .c = c};
  }
  double value(std::size_t row, index column) const {
    for (index n = rows.starts[row]; n < rows.starts[row + 1]; ++n) {
      const auto at = static_cast<std::size_t>(n);
      if (rows.columns[at] == column) return double{rows.values[at]};
    }
    return 0;
  }
};

enum class Wanted { kSigns, kNumbers };

inline Drawn draw(Wanted wanted, index count = 40) {
  Random random(1, RandomUse::kTest);
  Drawn drawn;
  for (index i = 0; i < count; ++i) {
    for (std::int32_t column = 0; column < kColumns; ++column) {
      if (i == 3 || random.uniform() < 0.5) continue;  // row 3 has nothing
      drawn.rows.columns.push_back(column);
      drawn.rows.values.push_back(static_cast<float>(random.normal()));
    }
    drawn.rows.starts.push_back(drawn.rows.size());
    const double y = random.normal();
    drawn.y.push_back(static_cast<float>(wanted == Wanted::kNumbers ? y : y > 0 ? 1 : -1));
    drawn.costs.push_back(random.uniform(0.2, 3));
    if (i % 5 != 4) drawn.used.push_back(static_cast<std::int32_t>(i));
  }
  for (index column = 0; column < kColumns; ++column) {
    drawn.scales.push_back(static_cast<float>(random.uniform(0.5, 2) * (column % 2 ? 1 : -1)));
  }
  return drawn;
}

inline SolverOptions exact() { return {.tolerance = 1e-8, .most_passes = 100'000}; }

/// So many problems with the rows of one, each with other signs, costs, scales and offset.
struct DrawnProblems {
  std::vector<Drawn> drawn;

  explicit DrawnProblems(std::size_t count) : drawn(count, draw(Wanted::kSigns, 60)) {
    Random random(2, RandomUse::kTest);
    for (std::size_t p = 0; p < count; ++p) {
      for (float& y : drawn[p].y) y = random.uniform() < 0.1 * static_cast<double>(p + 1) ? 1 : -1;
      for (float& scale : drawn[p].scales) scale *= static_cast<float>(random.uniform(0.5, 2));
      for (double& cost : drawn[p].costs) cost = random.uniform(0.2, 3);
    }
  }
  LinearProblem problem(std::size_t p, double c) const {
    LinearProblem one = drawn[p].problem(c);
    one.offset = 0.1 * static_cast<double>(p);
    if (p % 2) one.costs = {};
    return one;
  }
  std::vector<LinearProblem> problems(double c) const {
    std::vector<LinearProblem> all;
    for (std::size_t p = 0; p < drawn.size(); ++p) all.push_back(problem(p, c));
    return all;
  }
};

}  // namespace fovea
