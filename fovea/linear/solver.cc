// SPDX-License-Identifier: Apache-2.0
#include "fovea/linear/solver.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

#include "fovea/base/random.h"
#include "fovea/data/epoch_order.h"
#include "fovea/linear/logistic_step.h"
#include "fovea/linear/side_by_side.h"

namespace fovea {

namespace {

template <index L>
using Lanes = std::array<double, static_cast<std::size_t>(L)>;

// The operations of the solvers on rows and weights, of up to L problems side by side. A lane that
// has converged, or has no problem, is idle.
template <index L>
class Descent {
 public:
  Descent(std::span<const LinearProblem> problems, const SolverOptions& options,
          LinearSolution& solution)
      : problems_(problems),
        p_(problems.front()),
        options_(options),
        s_(solution),
        order_(p_.used.size()) {
    std::iota(order_.begin(), order_.end(), index{0});
    take_scales();
    squares_.reserve(order_.size());
    for (const std::int32_t i : p_.used) squares_.push_back(square_of(p_.rows.row(i)));
  }

  std::size_t size() const { return order_.size(); }
  std::size_t problems() const { return problems_.size(); }
  bool is_idle(std::size_t lane) const { return idle_[lane]; }
  double cost(std::size_t n, std::size_t lane) const { return cost_of(problems_[lane], n); }
  double y(std::size_t n, std::size_t lane) const {
    return double{problems_[lane].y[static_cast<std::size_t>(p_.used[n])]};
  }
  /// |s x|^2
  double square(std::size_t n, std::size_t lane) const { return squares_[n][lane]; }

  /// offset + (s w) x
  Lanes<L> values(std::size_t n) const {
    Lanes<L> sums{};
    kernels_.add_products(p_.rows.row(p_.used[n]), s_.weights.data(), sums.data());
    for (std::size_t l = 0; l < problems(); ++l) sums[l] = problems_[l].offset + sums[l];
    return sums;
  }
  /// w += steps s x
  void add(std::size_t n, const Lanes<L>& steps) {
    kernels_.add_row(p_.rows.row(p_.used[n]), steps.data(),
                     squared_scales_.empty() ? nullptr : squared_scales_.data(), s_.weights.data());
  }

  /// The duals as a solution with another c left them, in proportion, or else what begin(n, lane)
  /// sets. Then the weights that follow: factor(n, lane) s x of all rows.
  template <class Begin, class Factor>
  void start(std::size_t duals, const Begin& begin, const Factor& factor) {
    if (s_.c > 0 && s_.lanes == L && s_.dual.size() == duals) {
      for (double& dual : s_.dual) dual *= p_.c / s_.c;
    } else {
      s_.dual.assign(duals, 0);
      for (std::size_t n = 0; n < size(); ++n) {
        for (std::size_t l = 0; l < problems(); ++l) begin(n, l);
      }
    }
    s_.c = p_.c;
    s_.lanes = L;
    s_.weights.assign(static_cast<std::size_t>(p_.columns * L), 0);
    for (std::size_t n = 0; n < size(); ++n) {
      Lanes<L> steps{};
      for (std::size_t l = 0; l < problems(); ++l) steps[l] = factor(n, l);
      add(n, steps);
    }
  }

  /// Calls visit(n, far), which sets how far row n was from its optimum in each lane, for all rows,
  /// each time in another order, until none was farther than the tolerance.
  template <class Visit>
  bool run(const Visit& visit) {
    s_.converged = false;
    for (std::size_t l = 0; l < idle_.size(); ++l) idle_[l] = l >= problems();
    for (s_.passes = 0; s_.passes < options_.most_passes && !s_.converged; ++s_.passes) {
      if (options_.interrupted && options_.interrupted()) return false;
      Random random(options_.seed, RandomUse::kBatches, static_cast<std::uint64_t>(s_.passes));
      shuffle(order_, random);
      Lanes<L> farthest{};
      for (const index n : order_) {
        Lanes<L> far{};
        visit(static_cast<std::size_t>(n), far);
        for (std::size_t l = 0; l < far.size(); ++l) farthest[l] = std::max(farthest[l], far[l]);
      }
      s_.converged = true;
      for (std::size_t l = 0; l < idle_.size(); ++l) {
        if (farthest[l] <= options_.tolerance) idle_[l] = true;
        s_.converged = s_.converged && idle_[l];
      }
    }
    return true;
  }

 private:
  // Takes the scales of all problems side by side.
  void take_scales() {
    if (p_.scales.empty()) return;
    squared_scales_.resize(static_cast<std::size_t>(p_.columns * L));
    for (std::size_t l = 0; l < problems(); ++l) {
      for (std::size_t f = 0; f < static_cast<std::size_t>(p_.columns); ++f) {
        const double scale = double{problems_[l].scales[f]};
        squared_scales_[f * static_cast<std::size_t>(L) + l] = scale * scale;
      }
    }
  }
  Lanes<L> square_of(const SparseRow& row) const {
    Lanes<L> sums{};
    for (std::size_t k = 0; k < row.columns.size(); ++k) {
      const double value = double{row.values[k]};
      const auto at = static_cast<std::size_t>(index{row.columns[k]} * L);
      for (std::size_t l = 0; l < sums.size(); ++l) {
        const double square = squared_scales_.empty() ? 1 : squared_scales_[at + l];
        sums[l] += square * value * value;
      }
    }
    return sums;
  }

  const std::span<const LinearProblem> problems_;
  const LinearProblem& p_;  // what is the same in all
  const SolverOptions& options_;
  LinearSolution& s_;
  const SideBySideKernels kernels_ = side_by_side_kernels(L);
  std::vector<index> order_;
  std::vector<double> squared_scales_;  // [columns, L]; empty: all 1
  std::vector<Lanes<L>> squares_;
  std::array<bool, static_cast<std::size_t>(L)> idle_{};
};

template <index L>
bool solve_logistic_in(std::span<const LinearProblem> problems, const SolverOptions& options,
                       LinearSolution& solution) {
  constexpr auto kLanes = static_cast<std::size_t>(L);
  Descent<L> descent(problems, options, solution);
  std::vector<double>& dual = solution.dual;
  const auto at = [](std::size_t n, std::size_t lane) { return 2 * n * kLanes + lane; };
  const auto begin = [&](std::size_t n, std::size_t lane) {
    double &a = dual[at(n, lane)], &rest = dual[at(n, lane) + kLanes];
    a = first_dual(descent.cost(n, lane));
    rest = descent.cost(n, lane) - a;
  };
  descent.start(2 * descent.size() * kLanes, begin, [&](std::size_t n, std::size_t lane) {
    return descent.y(n, lane) * dual[at(n, lane)];
  });
  return descent.run([&](std::size_t n, Lanes<L>& far) {
    const Lanes<L> values = descent.values(n);
    Lanes<L> steps{};
    bool moved = false;
    for (std::size_t lane = 0; lane < kLanes; ++lane) {
      if (descent.is_idle(lane)) continue;
      const double y = descent.y(n, lane), cost = descent.cost(n, lane);
      const DualStep step = step_dual(y * values[lane], descent.square(n, lane), cost,
                                      dual[at(n, lane)], dual[at(n, lane) + kLanes]);
      far[lane] = step.far;
      if (step.grown != 0) steps[lane] = y * step.grown, moved = true;
    }
    if (moved) descent.add(n, steps);
  });
}

}  // namespace

void multiply(const SparseRow& row, const LinearSolution& solution, std::span<double> values) {
  Lanes<kMostLanes> sums{};
  side_by_side_kernels(solution.lanes).add_products(row, solution.weights.data(), sums.data());
  std::copy_n(sums.begin(), values.size(), values.begin());
}

bool solve_logistic(std::span<const LinearProblem> problems, const SolverOptions& options,
                    LinearSolution& solution) {
  if (problems.size() > 4) return solve_logistic_in<kMostLanes>(problems, options, solution);
  if (problems.size() > 2) return solve_logistic_in<4>(problems, options, solution);
  if (problems.size() > 1) return solve_logistic_in<2>(problems, options, solution);
  return solve_logistic_in<1>(problems, options, solution);
}

bool solve_logistic(const LinearProblem& problem, const SolverOptions& options,
                    LinearSolution& solution) {
  return solve_logistic(std::span(&problem, 1), options, solution);
}

bool solve_squares(const LinearProblem& problem, const SolverOptions& options,
                   LinearSolution& solution) {
  Descent<1> descent(std::span(&problem, 1), options, solution);
  std::vector<double>& dual = solution.dual;
  descent.start(
      descent.size(), [](std::size_t, std::size_t) {},
      [&](std::size_t n, std::size_t) { return dual[n]; });
  return descent.run([&](std::size_t n, Lanes<1>& far) {
    const double square = descent.square(n, 0), ridge = 1 / (2 * descent.cost(n, 0));
    const double error = descent.y(n, 0) - descent.values(n)[0];
    const double step = (error - ridge * dual[n]) / (square + ridge);
    dual[n] += step;
    descent.add(n, {step});
    far[0] = std::abs(step) * square;
  });
}

}  // namespace fovea
