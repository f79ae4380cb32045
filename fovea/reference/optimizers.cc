// SPDX-License-Identifier: Apache-2.0
#include "fovea/reference/optimizers.h"

#include <algorithm>
#include <cmath>
#include <vector>

namespace fovea::reference {

void lion(std::span<const LionSlot<double>> slots, const AdamWStep& step) {
  const AdamWOptions& o = step.options;
  for (const LionSlot<double>& slot : slots)
    for (index i = 0; i < slot.value.size; ++i) {
      const double g = step.gradient_scale * slot.gradient[i];
      const double c = o.beta1 * slot.m[i] + (1 - o.beta1) * g;
      const double sign = c > 0 ? 1 : c < 0 ? -1 : 0;
      slot.m[i] = o.beta2 * slot.m[i] + (1 - o.beta2) * g;
      slot.value[i] -= o.lr * (sign + slot.decay * o.weight_decay * slot.value[i]);
    }
}

void orthogonalise(Rows<const double> x, Rows<double> out) {
  const bool transposed = x.rows > x.columns;
  const index R = std::min(x.rows, x.columns), C = std::max(x.rows, x.columns);
  std::vector<double> from(static_cast<std::size_t>(R * C)), to(from);
  double squares = 0;
  for (index r = 0; r < R; ++r)
    for (index c = 0; c < C; ++c) {
      const double value = transposed ? x[c][r] : x[r][c];
      from[static_cast<std::size_t>(r * C + c)] = value;
      squares += value * value;
    }
  const double norm = std::sqrt(squares);
  for (double& value : from) value = norm > 0 ? value / norm : 0;
  // C [M,N] = A [M,K] B, of rows one after another; B [K,N], or [N,K] transposed.
  const auto product = [](const std::vector<double>& a, const std::vector<double>& b, bool of_rows,
                          index M, index N, index K) {
    std::vector<double> result(static_cast<std::size_t>(M * N));
    for (index m = 0; m < M; ++m)
      for (index n = 0; n < N; ++n)
        for (index k = 0; k < K; ++k)
          result[static_cast<std::size_t>(m * N + n)] +=
              a[static_cast<std::size_t>(m * K + k)] *
              b[static_cast<std::size_t>(of_rows ? n * K + k : k * N + n)];
    return result;
  };
  for (int step = 0; step < 5; ++step) {
    const auto a = product(from, from, true, R, R, C), square = product(a, a, false, R, R, R);
    std::vector<double> b(a.size());
    for (std::size_t i = 0; i < b.size(); ++i) b[i] = -4.7750 * a[i] + 2.0315 * square[i];
    to = product(b, from, false, R, C, R);
    for (std::size_t i = 0; i < to.size(); ++i) from[i] = 3.4445 * from[i] + to[i];
  }
  for (index r = 0; r < R; ++r)
    for (index c = 0; c < C; ++c)
      (transposed ? out[c][r] : out[r][c]) = from[static_cast<std::size_t>(r * C + c)];
}

void muon(const MuonSlot<double>& slot, const AdamWStep& step) {
  const AdamWOptions& o = step.options;
  const index R = slot.value.rows, C = slot.value.columns;
  std::vector<double> memory(static_cast<std::size_t>(R * C));
  const Rows<double> direction(memory.data(), R, C);
  for (index r = 0; r < R; ++r)
    for (index c = 0; c < C; ++c) {
      const double g = step.gradient_scale * slot.gradient[r][c];
      slot.m[r][c] = 0.95 * slot.m[r][c] + g;
      direction[r][c] = g + 0.95 * slot.m[r][c];
    }
  orthogonalise(direction, direction);
  const double size = 0.2 * std::sqrt(static_cast<double>(std::max(R, C)));
  for (index r = 0; r < R; ++r)
    for (index c = 0; c < C; ++c) {
      const double shrink = slot.decay * o.weight_decay * slot.value[r][c];
      slot.value[r][c] -= o.lr * (size * direction[r][c] + shrink);
    }
}

}  // namespace fovea::reference
