// SPDX-License-Identifier: Apache-2.0
// The formulas of the ops in plain loops.
#pragma once

#include <algorithm>
#include <cmath>
#include <span>
#include <vector>

#include "fovea/base/view.h"

namespace fovea {

using Matrices = std::span<const Rows<const double>>;

inline void linear_reference(Matrices in, Rows<double> y) {
  for (index n = 0; n < y.rows; ++n) {
    for (index o = 0; o < y.columns; ++o) {
      y[n][o] = in[2][0][o];
      for (index c = 0; c < in[0].columns; ++c) y[n][o] += in[0][n][c] * in[1][o][c];
    }
  }
}

inline void embedding_reference(Matrices in, Rows<double> y) {
  const int tokens[] = {2, 0, 4, 2, 2, 1};
  for (index n = 0; n < y.rows; ++n) {
    for (index c = 0; c < y.columns; ++c) y[n][c] = in[0][tokens[n]][c] + in[1][n % 3][c];
  }
}

inline void layer_norm_reference(Matrices in, Rows<double> y) {
  const auto C = static_cast<double>(y.columns);
  for (index n = 0; n < y.rows; ++n) {
    double mu = 0, variance = 0;
    for (index c = 0; c < y.columns; ++c) mu += in[0][n][c] / C;
    for (index c = 0; c < y.columns; ++c) variance += (in[0][n][c] - mu) * (in[0][n][c] - mu) / C;
    for (index c = 0; c < y.columns; ++c) {
      y[n][c] = in[1][0][c] * (in[0][n][c] - mu) / std::sqrt(variance + 1e-5) + in[2][0][c];
    }
  }
}

inline void rms_norm_reference(Matrices in, Rows<double> y) {
  for (index n = 0; n < y.rows; ++n) {
    double square = 0;
    for (index c = 0; c < y.columns; ++c) {
      square += in[0][n][c] * in[0][n][c] / static_cast<double>(y.columns);
    }
    for (index c = 0; c < y.columns; ++c) {
      y[n][c] = in[1][0][c] * in[0][n][c] / std::sqrt(square + 1e-5);
    }
  }
}

inline void gelu_reference(Matrices in, Rows<double> y) {
  for (index n = 0; n < y.rows; ++n) {
    for (index c = 0; c < y.columns; ++c) {
      y[n][c] = in[0][n][c] * 0.5 * std::erfc(-in[0][n][c] / std::sqrt(2.0));
    }
  }
}

inline void columns_swapped_reference(Matrices in, Rows<double> y) {
  for (index n = 0; n < y.rows; ++n) {
    for (index c = 0; c < 5; ++c) y[n][c] = in[0][n][(c + 2) % 5];
  }
}

inline void softmax_reference(Matrices in, Rows<double> y) {
  for (index n = 0; n < y.rows; ++n) {
    double total = 0;
    for (index c = 0; c < y.columns; ++c) total += std::exp(in[0][n][c]);
    for (index c = 0; c < y.columns; ++c) y[n][c] = std::exp(in[0][n][c]) / total;
  }
}

// One causal sequence; in: q, k, v with two heads side by side.
inline void attention_reference_case(Matrices in, Rows<double> y) {
  const index D = in[0].columns / 2, Dv = in[2].columns / 2;
  for (index h = 0; h < 2; ++h) {
    for (index i = 0; i < y.rows; ++i) {
      double total = 0;
      std::fill_n(y[i] + h * Dv, Dv, 0.0);
      for (index j = 0; j <= i; ++j) {
        double score = 0;
        for (index d = 0; d < D; ++d) score += in[0][i][h * D + d] * in[1][j][h * D + d];
        const double weight = std::exp(score / std::sqrt(static_cast<double>(D)));
        total += weight;
        for (index d = 0; d < Dv; ++d) y[i][h * Dv + d] += weight * in[2][j][h * Dv + d];
      }
      for (index d = 0; d < Dv; ++d) y[i][h * Dv + d] /= total;
    }
  }
}

inline void cross_entropy_reference(Matrices in, Rows<double> y) {
  const int targets[] = {3, -1, 0, 4, 3, 1};
  y[0][0] = 0;
  for (index n = 0; n < in[0].rows; ++n) {
    if (targets[n] < 0) continue;
    double total = 0;
    for (index c = 0; c < in[0].columns; ++c) total += std::exp(in[0][n][c]);
    y[0][0] += 0.25 * (std::log(total) - in[0][n][targets[n]]);
  }
}

inline void linear_cross_entropy_reference(Matrices in, Rows<double> y) {
  std::vector<double> values(static_cast<std::size_t>(in[0].rows * in[1].rows));
  const Rows<double> logits(values.data(), in[0].rows, in[1].rows);
  linear_reference(in, logits);
  const Rows<const double> one[] = {logits};
  cross_entropy_reference(one, y);
}

}  // namespace fovea
