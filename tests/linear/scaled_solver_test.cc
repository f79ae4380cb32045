// SPDX-License-Identifier: Apache-2.0
#include "fovea/linear/scaled_solver.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/linear/drawn_problems.h"

namespace fovea {
namespace {

// The logits of all rows are those of the exact solution in float64, along a path of c, with
// scales and costs and without.
TEST(ScaledSolver, FindsWhatTheSolverInFloat64Finds) {
  const DrawnProblems drawn(3);
  for (std::size_t p = 0; p < drawn.drawn.size(); ++p) {
    LinearSolution path;
    for (const double c : {0.01, 1.0, 30.0}) {
      LinearProblem problem = drawn.problem(p, c);
      if (p == 2) problem.scales = {};
      LinearSolution exactly;
      ASSERT_TRUE(solve_scaled(problem, {.tolerance = 1e-3, .most_passes = 3000}, path));
      ASSERT_TRUE(solve_logistic(problem, exact(), exactly));
      EXPECT_TRUE(path.converged) << p << " " << c;
      for (index i = 0; i < problem.rows.rows(); ++i) {
        const SparseRow row = problem.rows.row(i);
        EXPECT_NEAR(row.product(path.weights), row.product(exactly.weights), 2e-3) << p << " " << c;
      }
    }
  }
}

// Duals that another c left are a better start than none.
TEST(ScaledSolver, GoesOnFromAnotherC) {
  const Drawn drawn = draw(Wanted::kSigns, 200);
  LinearSolution path, fresh;
  ASSERT_TRUE(solve_scaled(drawn.problem(8), {}, path));
  ASSERT_TRUE(solve_scaled(drawn.problem(10), {}, path));
  ASSERT_TRUE(solve_scaled(drawn.problem(10), {}, fresh));
  EXPECT_LT(path.passes, fresh.passes);
  EXPECT_EQ(path.c, 10);
}

TEST(ScaledSolver, StaysFiniteAndStopsWhenAsked) {
  Drawn drawn = draw(Wanted::kSigns);
  for (std::size_t i = 0; i < drawn.y.size(); ++i) drawn.y[i] = drawn.value(i, 0) < 0 ? 1 : -1;
  LinearSolution solution;
  ASSERT_TRUE(solve_scaled(drawn.problem(1e12), {.most_passes = 50}, solution));
  EXPECT_LE(solution.passes, 50);
  for (const double w : solution.weights) EXPECT_TRUE(std::isfinite(w));
  int asked = 0;
  SolverOptions options = exact();
  options.interrupted = [&] { return ++asked == 3; };
  EXPECT_FALSE(solve_scaled(drawn.problem(1000), options, solution));
  EXPECT_EQ(asked, 3);
}

}  // namespace
}  // namespace fovea
