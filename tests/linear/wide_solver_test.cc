// SPDX-License-Identifier: Apache-2.0
#include "fovea/linear/wide_solver.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/isa.h"
#include "tests/linear/drawn_problems.h"

namespace fovea {
namespace {

constexpr auto kLanes = static_cast<std::size_t>(kWideLanes);

SolverOptions exact_floats() { return {.tolerance = 4e-5, .most_passes = 10'000}; }

// Those of the solver in double, along a path of c, with scales and without.
TEST(WideSolver, ReachesTheOptimumOfTheLogisticLoss) {
  const DrawnProblems drawn(kLanes);
  for (const bool scaled : {true, false}) {
    WideSolution path;
    for (const double c : {0.01, 1.0, 30.0}) {
      std::vector<LinearProblem> problems = drawn.problems(c);
      for (LinearProblem& p : problems) p.scales = scaled ? p.scales : std::span<const float>();
      ASSERT_TRUE(solve_logistic(problems, exact_floats(), path));
      EXPECT_TRUE(path.converged);
      for (std::size_t p = 0; p < kLanes; ++p) {
        LinearSolution best;
        ASSERT_TRUE(solve_logistic(problems[p], exact(), best));
        for (index f = 0; f < kColumns; ++f) {
          const double weight = best.weights[static_cast<std::size_t>(f)];
          EXPECT_NEAR(path.weight(f, p), weight, 1e-3 * std::max(1.0, std::abs(weight)))
              << scaled << " " << c << " " << p << " " << f;
        }
      }
    }
  }
}

// Side by side or alone, on every instruction set: the same bits.
TEST(WideSolver, SolvesSeveralAsItSolvesEach) {
  const DrawnProblems drawn(kLanes);
  const std::vector<LinearProblem> problems = drawn.problems(4);
  WideSolution first;
  ASSERT_TRUE(solve_logistic(problems, {}, first));
  std::vector<double> wanted(kLanes);
  multiply(drawn.drawn[0].rows.row(5), first, wanted);
  for_each_isa([&] {
    WideSolution together;
    ASSERT_TRUE(solve_logistic(problems, {}, together));
    std::vector<double> values(kLanes);
    multiply(drawn.drawn[0].rows.row(5), together, values);
    EXPECT_EQ(values, wanted);
    for (std::size_t p = 0; p < kLanes; ++p) {
      WideSolution alone;
      ASSERT_TRUE(solve_logistic(std::span(&problems[p], 1), {}, alone));
      EXPECT_LE(alone.passes, together.passes);
      for (index f = 0; f < kColumns; ++f) {
        EXPECT_EQ(alone.weight(f, 0), first.weight(f, p)) << p;
        EXPECT_EQ(together.weight(f, p), first.weight(f, p)) << p;
      }
    }
  });
}

// Rows that can be separated by far, and a c that would let the weights grow without end.
TEST(WideSolver, StaysFiniteWhereNothingHoldsTheWeights) {
  Drawn drawn = draw(Wanted::kSigns);
  for (std::size_t i = 0; i < drawn.y.size(); ++i) drawn.y[i] = drawn.value(i, 0) < 0 ? 1 : -1;
  const LinearProblem problem = drawn.problem(1e9);
  WideSolution solution;
  ASSERT_TRUE(solve_logistic(std::span(&problem, 1), {.most_passes = 50}, solution));
  EXPECT_LE(solution.passes, 50);
  for (index f = 0; f < kColumns; ++f) EXPECT_TRUE(std::isfinite(solution.weight(f, 0)));
}

TEST(WideSolver, StopsWhenAsked) {
  const Drawn drawn = draw(Wanted::kSigns);
  const LinearProblem problem = drawn.problem(1000);
  int asked = 0;
  SolverOptions options = exact_floats();
  options.interrupted = [&] { return ++asked == 3; };
  WideSolution solution;
  EXPECT_FALSE(solve_logistic(std::span(&problem, 1), options, solution));
  EXPECT_EQ(asked, 3);
}

}  // namespace
}  // namespace fovea
