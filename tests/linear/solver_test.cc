// SPDX-License-Identifier: Apache-2.0
#include "fovea/linear/solver.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "fovea/base/random.h"
#include "tests/isa.h"
#include "tests/linear/drawn_problems.h"

namespace fovea {
namespace {

double logit(const Drawn& drawn, const LinearSolution& solution, std::size_t row, double offset) {
  double z = offset;
  for (index f = 0; f < kColumns; ++f) {
    z += solution.weights[static_cast<std::size_t>(f)] * drawn.value(row, f);
  }
  return z;
}

// The largest element of the gradient of  1/2 |w|^2 + c sum_i c_i log(1 + exp(-y z)), where the
// weights found are s w; at the optimum it is 0.
double gradient_at(const Drawn& drawn, const LinearProblem& p, const LinearSolution& solution) {
  double largest = 0;
  for (std::size_t f = 0; f < kColumns; ++f) {
    const double s = double{drawn.scales[f]};
    double gradient = solution.weights[f] / s;
    for (const std::int32_t i : drawn.used) {
      const auto row = static_cast<std::size_t>(i);
      const double y = double{drawn.y[row]};
      const double z = logit(drawn, solution, row, p.offset);
      gradient -= p.c * drawn.costs[row] * y / (1 + std::exp(y * z)) * s *
                  drawn.value(row, static_cast<index>(f));
    }
    largest = std::max(largest, std::abs(gradient));
  }
  return largest;
}

TEST(LinearSolver, ReachesTheOptimumOfTheLogisticLoss) {
  const Drawn drawn = draw(Wanted::kSigns);
  for (const double c : {1e-4, 0.01, 1.0, 30.0, 1000.0}) {
    LinearSolution solution;
    ASSERT_TRUE(solve_logistic(drawn.problem(c), exact(), solution));
    EXPECT_TRUE(solution.converged) << c;
    EXPECT_LT(gradient_at(drawn, drawn.problem(c), solution), 1e-6 * std::max(1.0, c)) << c;
    for (std::size_t n = 0; n < drawn.used.size(); ++n) {
      EXPECT_GT(solution.dual[2 * n], 0);
      EXPECT_GT(solution.dual[2 * n + 1], 0);
    }
  }
}

// With the tolerance that fits have, no logit of a row is far from where it ends.
TEST(LinearSolver, IsNearTheOptimumWithItsUsualTolerance) {
  const Drawn drawn = draw(Wanted::kSigns);
  LinearSolution usual, best;
  ASSERT_TRUE(solve_logistic(drawn.problem(10), {}, usual));
  ASSERT_TRUE(solve_logistic(drawn.problem(10), exact(), best));
  for (std::size_t i = 0; i < drawn.y.size(); ++i) {
    EXPECT_NEAR(logit(drawn, usual, i, 0.3), logit(drawn, best, i, 0.3), 0.02) << i;
  }
}

// Gauss with pivots: a [n, n + 1] becomes its solution.
std::vector<double> solve_equations(std::vector<std::vector<double>> a) {
  const std::size_t n = a.size();
  for (std::size_t k = 0; k < n; ++k) {
    const auto pivot =
        std::max_element(a.begin() + static_cast<std::ptrdiff_t>(k), a.end(),
                         [&](auto& x, auto& y) { return std::abs(x[k]) < std::abs(y[k]); });
    std::swap(a[k], *pivot);
    for (std::size_t i = 0; i < n; ++i) {
      if (i == k) continue;
      const double factor = a[i][k] / a[k][k];
      for (std::size_t j = k; j <= n; ++j) a[i][j] -= factor * a[k][j];
    }
  }
  std::vector<double> x;
  for (std::size_t k = 0; k < n; ++k) x.push_back(a[k][n] / a[k][k]);
  return x;
}

// (I + 2 c S X' D X S) w = 2 c S X' D (y - offset)
TEST(LinearSolver, SolvesSquaresAsTheNormalEquationsSay) {
  const Drawn drawn = draw(Wanted::kNumbers);
  for (const double c : {0.01, 1.0, 100.0}) {
    const LinearProblem p = drawn.problem(c);
    std::vector<std::vector<double>> a(kColumns, std::vector<double>(kColumns + 1));
    for (std::size_t f = 0; f < kColumns; ++f) {
      a[f][f] = 1;
      for (const std::int32_t i : drawn.used) {
        const auto row = static_cast<std::size_t>(i);
        const double factor = 2 * c * drawn.costs[row] * double{drawn.scales[f]} *
                              drawn.value(row, static_cast<index>(f));
        for (std::size_t g = 0; g < kColumns; ++g) {
          a[f][g] += factor * double{drawn.scales[g]} * drawn.value(row, static_cast<index>(g));
        }
        a[f][kColumns] += factor * (double{drawn.y[row]} - p.offset);
      }
    }
    const std::vector<double> w = solve_equations(a);
    LinearSolution solution;
    ASSERT_TRUE(solve_squares(p, exact(), solution));
    EXPECT_TRUE(solution.converged);
    for (std::size_t f = 0; f < kColumns; ++f) {
      EXPECT_NEAR(solution.weights[f], double{drawn.scales[f]} * w[f], 1e-7) << c << " " << f;
    }
  }
}

// A path of c: the solution is that of a fresh start, in fewer passes.
TEST(LinearSolver, GoesOnFromAnotherC) {
  const Drawn drawn = draw(Wanted::kSigns, 200);
  LinearSolution path, fresh;
  ASSERT_TRUE(solve_logistic(drawn.problem(8), exact(), path));
  ASSERT_TRUE(solve_logistic(drawn.problem(10), exact(), path));
  ASSERT_TRUE(solve_logistic(drawn.problem(10), exact(), fresh));
  for (std::size_t f = 0; f < kColumns; ++f) {
    EXPECT_NEAR(path.weights[f], fresh.weights[f], 1e-6);
  }
  EXPECT_LE(path.passes, fresh.passes);
}

// Rows that can be separated by far, and a c that would let the weights grow without end.
TEST(LinearSolver, StaysFiniteWhereNothingHoldsTheWeights) {
  Drawn drawn = draw(Wanted::kSigns);
  for (std::size_t i = 0; i < drawn.y.size(); ++i) drawn.y[i] = drawn.value(i, 0) < 0 ? 1 : -1;
  LinearSolution solution;
  ASSERT_TRUE(solve_logistic(drawn.problem(1e12), {.most_passes = 50}, solution));
  EXPECT_LE(solution.passes, 50);
  for (const double w : solution.weights) EXPECT_TRUE(std::isfinite(w));
}

// Side by side or alone, along a path of c: the same bits, on every instruction set.
TEST(LinearSolver, SolvesSeveralAsItSolvesEach) {
  const DrawnProblems drawn(static_cast<std::size_t>(kMostLanes));
  for_each_isa([&] {
    for (const std::size_t count : {1U, 2U, 3U, 5U, 8U}) {
      LinearSolution together;
      std::vector<LinearSolution> alone(count);
      for (const double c : {0.5, 2.0, 30.0}) {
        std::vector<LinearProblem> problems;
        for (std::size_t p = 0; p < count; ++p) problems.push_back(drawn.problem(p, c));
        ASSERT_TRUE(solve_logistic(problems, {}, together));
        int passes = 0;
        bool converged = true;
        for (std::size_t p = 0; p < count; ++p) {
          ASSERT_TRUE(solve_logistic(problems[p], {}, alone[p]));
          passes = std::max(passes, alone[p].passes);
          converged = converged && alone[p].converged;
          for (std::size_t f = 0; f < kColumns; ++f) {
            const std::size_t at = f * static_cast<std::size_t>(together.lanes) + p;
            EXPECT_EQ(together.weights[at], alone[p].weights[f]) << count << " " << p << " " << c;
          }
        }
        EXPECT_EQ(together.passes, passes);
        EXPECT_EQ(together.converged, converged);
        std::vector<double> values(count);
        multiply(drawn.drawn[0].rows.row(5), together, values);
        for (std::size_t p = 0; p < count; ++p) {
          EXPECT_EQ(values[p], drawn.drawn[0].rows.row(5).product(alone[p].weights));
        }
      }
    }
  });
}

TEST(LinearSolver, StopsWhenAsked) {
  const Drawn drawn = draw(Wanted::kSigns);
  const Drawn numbers = draw(Wanted::kNumbers);
  int asked = 0;
  SolverOptions options = exact();
  options.interrupted = [&] { return ++asked == 3; };
  LinearSolution solution;
  EXPECT_FALSE(solve_logistic(drawn.problem(1000), options, solution));
  EXPECT_EQ(asked, 3);
  options.interrupted = [] { return true; };
  EXPECT_FALSE(solve_squares(numbers.problem(1000), options, solution));
}

}  // namespace
}  // namespace fovea
