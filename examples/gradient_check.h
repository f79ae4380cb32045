// SPDX-License-Identifier: Apache-2.0
// The gradients of a part of one's own against central differences, in double, through the fused
// kernels.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <vector>

#include "fovea/attention/attention.h"

namespace example {

using fovea::index;

/// One head of self-sized attention with a loss: the sum of o * d_o.
struct Problem {
  index T = 70, S = 110, D = 6;  // more than one tile each way
  std::vector<double> q = waves(T * D, 0.37), k = waves(S * D, 0.61), v = waves(S * D, 0.83);
  std::vector<double> d_o = waves(T * D, 0.29);
  std::vector<double> dq = q, dk = k, dv = v;

  static std::vector<double> waves(index n, double rate) {
    std::vector<double> x;
    for (index i = 0; i < n; ++i) x.push_back(std::sin(rate * static_cast<double>(i * i % 1009)));
    return x;
  }
  fovea::View<double> view(std::vector<double>& x, index rows) const {
    return fovea::View<double>::contiguous(x.data(), 1, rows, 1, D);
  }

  /// The loss, and if asked its gradients in dq, dk, dv and in the part.
  double run(const fovea::Attention<double>& attention, bool want_gradients = false) {
    std::vector<double> o(d_o.size()), lse(static_cast<std::size_t>(T)), low = lse;
    const fovea::AttentionInputs<double> in{view(q, T), view(k, S), view(v, S)};
    const auto lse_view = fovea::RowView<double>::contiguous(lse.data(), 1, 1, T);
    const auto low_view = fovea::RowView<double>::contiguous(low.data(), 1, 1, T);
    const fovea::Context ctx(1);
    fovea::attention_forward(ctx, attention, in, {view(o, T), lse_view, low_view});
    if (want_gradients) {
      fovea::attention_backward(ctx, attention, in, {view(o, T), lse_view, view(d_o, T), low_view},
                                {view(dq, T), view(dk, S), view(dv, S)});
    }
    double loss = 0;
    for (std::size_t i = 0; i < o.size(); ++i) loss += o[i] * d_o[i];
    return loss;
  }
};

/// Largest difference between dx and the central differences of the loss, at up to 40 places of x,
/// relative to the largest gradient.
template <class Values, class Loss>
double gradient_error(const char* name, Values& x, const Values& dx, Loss&& loss) {
  double error = 0, largest = 0;
  const std::size_t step = std::max<std::size_t>(1, x.size() / 40);
  for (std::size_t i = 0; i < x.size(); i += step) {
    const double old = x[i], h = 1e-5;
    x[i] = old + h;
    const double above = loss();
    x[i] = old - h;
    const double below = loss();
    x[i] = old;
    error = std::max(error, std::abs((above - below) / (2 * h) - dx[i]));
    largest = std::max(largest, std::abs(dx[i]));
  }
  std::printf("%-12s largest gradient %.3g, error %.1e\n", name, largest, error / largest);
  return error / largest;
}

}  // namespace example
