// SPDX-License-Identifier: Apache-2.0
#include "fovea/linear/solver.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "fovea/base/random.h"
#include "fovea/data/epoch_order.h"

namespace fovea {

namespace {

// What both solvers do with rows and weights.
class Descent {
 public:
  Descent(const LinearProblem& problem, const SolverOptions& options, LinearSolution& solution)
      : p_(problem), options_(options), s_(solution), order_(problem.used.size()) {
    std::iota(order_.begin(), order_.end(), index{0});
    squares_.reserve(order_.size());
    for (const std::int32_t i : p_.used) squares_.push_back(square_of(p_.rows.row(i)));
  }

  std::size_t size() const { return order_.size(); }
  double cost(std::size_t n) const {
    return p_.c * (p_.costs.empty() ? 1 : p_.costs[static_cast<std::size_t>(p_.used[n])]);
  }
  double y(std::size_t n) const { return double{p_.y[static_cast<std::size_t>(p_.used[n])]}; }
  /// |s x|^2
  double square(std::size_t n) const { return squares_[n]; }

  /// offset + (s w) x
  double value(std::size_t n) const {
    return p_.offset + p_.rows.row(p_.used[n]).product(s_.weights);
  }
  /// w += step s x
  void add(std::size_t n, double step) {
    const SparseRow row = p_.rows.row(p_.used[n]);
    for (std::size_t k = 0; k < row.columns.size(); ++k) {
      const auto column = static_cast<std::size_t>(row.columns[k]);
      s_.weights[column] += step * scale_square(column) * double{row.values[k]};
    }
  }

  /// The duals as a solution with another c left them, in proportion, or else what begin(n) sets.
  /// Then the weights that follow: factor(n) s x of all rows.
  template <class Begin, class Factor>
  void start(std::size_t duals, const Begin& begin, const Factor& factor) {
    if (s_.c > 0 && s_.dual.size() == duals) {
      for (double& dual : s_.dual) dual *= p_.c / s_.c;
    } else {
      s_.dual.assign(duals, 0);
      for (std::size_t n = 0; n < size(); ++n) begin(n);
    }
    s_.c = p_.c;
    s_.weights.assign(static_cast<std::size_t>(p_.columns), 0);
    for (std::size_t n = 0; n < size(); ++n) add(n, factor(n));
  }

  /// Calls visit(n), which returns how far row n was from its optimum, for all rows, each time in
  /// another order, until none was farther than the tolerance.
  template <class Visit>
  bool run(const Visit& visit) {
    s_.converged = false;
    for (s_.passes = 0; s_.passes < options_.most_passes && !s_.converged; ++s_.passes) {
      if (options_.interrupted && options_.interrupted()) return false;
      Random random(options_.seed, RandomUse::kBatches, static_cast<std::uint64_t>(s_.passes));
      shuffle(order_, random);
      double farthest = 0;
      for (const index n : order_) {
        farthest = std::max(farthest, visit(static_cast<std::size_t>(n)));
      }
      s_.converged = farthest <= options_.tolerance;
    }
    return true;
  }

 private:
  double scale_square(std::size_t column) const {
    if (p_.scales.empty()) return 1;
    const double scale = double{p_.scales[column]};
    return scale * scale;
  }
  double square_of(const SparseRow& row) const {
    double sum = 0;
    for (std::size_t k = 0; k < row.columns.size(); ++k) {
      const double value = double{row.values[k]};
      sum += scale_square(static_cast<std::size_t>(row.columns[k])) * value * value;
    }
    return sum;
  }

  const LinearProblem& p_;
  const SolverOptions& options_;
  LinearSolution& s_;
  std::vector<index> order_;
  std::vector<double> squares_;
};

// The z in (0, cost) where its derivative square (z - old) + slope + log(z / (cost - z)) is 0, by
// Newton's method (Yu, Huang & Lin 2011, algorithm 4). The optimum lies in (0, cost / 2].
double logistic_step(double square, double slope, double old, double cost) {
  constexpr int kMostSteps = 100;
  constexpr double kNear = 1e-10, kShrink = 0.1;
  double z = old <= cost / 2 ? old : kShrink * old;
  for (int step = 0; step < kMostSteps; ++step) {
    const double gradient = square * (z - old) + slope + std::log(z / (cost - z));
    if (std::abs(gradient) < kNear) break;
    const double next = z - gradient / (square + cost / (cost - z) / z);
    if (next == z) break;
    z = next <= 0 ? kShrink * z : std::min(next, cost / 2);
  }
  return z;
}

}  // namespace

bool solve_logistic(const LinearProblem& problem, const SolverOptions& options,
                    LinearSolution& solution) {
  constexpr double kFirstShare = 1e-3, kFirst = 1e-8;
  Descent descent(problem, options, solution);
  std::vector<double>& dual = solution.dual;
  const auto begin = [&](std::size_t n) {
    dual[2 * n] = std::min(kFirstShare * descent.cost(n), kFirst);
    dual[2 * n + 1] = descent.cost(n) - dual[2 * n];
  };
  descent.start(2 * descent.size(), begin,
                [&](std::size_t n) { return descent.y(n) * dual[2 * n]; });
  return descent.run([&](std::size_t n) {
    const double y = descent.y(n), cost = descent.cost(n), square = descent.square(n);
    const double slope = y * descent.value(n);
    double &a = dual[2 * n], &rest = dual[2 * n + 1];
    const double far = std::abs(slope + std::log(a / rest));
    // The smaller of both is the variable, so that neither is a difference of equal numbers.
    const bool is_small = square * (cost / 2 - a) + slope > 0;
    double& small = is_small ? a : rest;
    const double old = small;
    small = logistic_step(square, is_small ? slope : -slope, old, cost);
    (is_small ? rest : a) = cost - small;
    if (small != old) descent.add(n, (is_small ? y : -y) * (small - old));
    return far;
  });
}

bool solve_squares(const LinearProblem& problem, const SolverOptions& options,
                   LinearSolution& solution) {
  Descent descent(problem, options, solution);
  std::vector<double>& dual = solution.dual;
  descent.start(
      descent.size(), [](std::size_t) {}, [&](std::size_t n) { return dual[n]; });
  return descent.run([&](std::size_t n) {
    const double square = descent.square(n), ridge = 1 / (2 * descent.cost(n));
    const double step = (descent.y(n) - descent.value(n) - ridge * dual[n]) / (square + ridge);
    dual[n] += step;
    descent.add(n, step);
    return std::abs(step) * square;
  });
}

}  // namespace fovea
