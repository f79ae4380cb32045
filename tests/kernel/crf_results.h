// SPDX-License-Identifier: Apache-2.0
// The results of the kernels of a CRF for a problem, and those of the plain loops.
#pragma once

#include <vector>

#include "fovea/reference/kernels.h"
#include "tests/kernel/crf_problem.h"

namespace fovea {

inline const Context kContext(2);

/// The results of crf_loss, by the kernels or by the reference.
template <class T>
struct Result {
  double total = 0;
  std::vector<double> losses;
  Matrix<T> emissions, transitions, start, end;

  bool operator==(const Result&) const = default;
  CrfGradient<T> gradient() {
    return {emissions.view(), transitions.view(), start.vec(), end.vec()};
  }
};

template <class T>
Result<T> room_for(const CrfProblem<T>& p) {
  const index N = p.emissions.rows(), K = p.K();
  return {0,
          std::vector<double>(static_cast<std::size_t>(p.sequences())),
          Matrix<T>(N, K),
          Matrix<T>(K, K),
          Matrix<T>(1, K),
          Matrix<T>(1, K)};
}

template <class T>
Result<T> fast(const CrfProblem<T>& p, double scale = 1, const Context& ctx = kContext) {
  Result<T> r = room_for(p);
  r.total = crf_loss<T>(ctx, p.scores(), p.rows(), {p.tags, scale}, r.losses, r.gradient());
  return r;
}

template <class T>
Result<T> plain(const CrfProblem<T>& p, double scale = 1) {
  Result<T> r = room_for(p);
  r.total = reference::crf_loss<T>(p.scores(), p.rows(), {p.tags, scale}, r.losses, r.gradient());
  return r;
}

template <class T>
Matrix<T> fast_marginals(const CrfProblem<T>& p, const Context& ctx = kContext) {
  Matrix<T> y(p.emissions.rows(), p.K());
  crf_marginals<T>(ctx, p.scores(), p.rows(), y.view());
  return y;
}

template <class T>
Matrix<T> plain_marginals(const CrfProblem<T>& p) {
  Matrix<T> y(p.emissions.rows(), p.K());
  reference::crf_marginals<T>(p.scores(), p.rows(), y.view());
  return y;
}

inline std::vector<double> plain_partition(const CrfProblem<double>& p) {
  std::vector<double> z(static_cast<std::size_t>(p.sequences()));
  reference::crf_log_partition<double>(p.scores(), p.rows(), z);
  return z;
}

template <class T>
std::vector<double> fast_partition(const CrfProblem<T>& p, const Context& ctx = kContext) {
  std::vector<double> z(static_cast<std::size_t>(p.sequences()));
  crf_log_partition<T>(ctx, p.scores(), p.rows(), z);
  return z;
}

}  // namespace fovea
