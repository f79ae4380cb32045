// SPDX-License-Identifier: Apache-2.0
#include "fovea/reference/losses.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

namespace fovea::reference {

template <class T>
CrossEntropy cross_entropy(InRows<T> logits, const Targets& targets, double scale, Vec<T> losses,
                           Rows<T> dlogits) {
  CrossEntropy result;
  const index V = logits.columns;
  for (index n = 0; n < logits.rows; ++n) {
    const std::int32_t target = targets.ids[n];
    const bool ignored = target == targets.ignore;
    const T* x = logits[n];
    const T max = *std::max_element(x, x + V);
    T sum = 0, all = 0, loss = 0;
    for (index v = 0; v < V; ++v) sum += std::exp(x[v] - max);
    const auto share = [&](index v) {
      const double weight = targets.weights.empty() ? 1 : targets.weights[v];
      const double smooth = targets.smoothing;
      return static_cast<T>(weight *
                            ((v == target ? 1 - smooth : 0) + smooth / static_cast<double>(V)));
    };
    for (index v = 0; v < V; ++v) {
      all += share(v);
      if (share(v) > T{0}) loss += share(v) * (std::log(sum) + max - x[v]);
    }
    for (index v = 0; v < dlogits.columns; ++v) {
      const T p = std::exp(x[v] - max) / sum;
      dlogits[n][v] = ignored ? T{0} : static_cast<T>(scale) * (all * p - share(v));
    }
    losses[n] = ignored ? T{0} : loss;
    result.total += static_cast<double>(losses[n]);
    result.count += ignored ? 0 : 1;
  }
  return result;
}

template <class T>
double binary_cross_entropy(InRows<T> logits, const BinaryTargets<T>& targets, double scale,
                            Vec<T> losses, Rows<T> dlogits) {
  const BinaryWeights& w = targets.weights;
  const auto e = static_cast<T>(w.smoothing);
  double total = 0;
  for (index n = 0; n < logits.rows; ++n) {
    losses[n] = 0;
    for (index k = 0; k < logits.columns; ++k) {
      const T x = logits[n][k], y = (1 - e) * targets.y[n][k] + e / 2;
      const T p = w.ones.empty() ? T{1} : static_cast<T>(w.ones[k]);
      const T q = w.zeros.empty() ? T{1} : static_cast<T>(w.zeros[k]);
      losses[n] += p * y * std::log(1 + std::exp(-x)) + q * (1 - y) * std::log(1 + std::exp(x));
      dlogits[n][k] =
          static_cast<T>(scale) * (q * (1 - y) / (1 + std::exp(-x)) - p * y / (1 + std::exp(x)));
    }
    total += static_cast<double>(losses[n]);
  }
  return total;
}

template <class T>
CrossEntropy linear_cross_entropy(const LinearCrossEntropy<T>& a) {
  const index N = a.x.rows, C = a.x.columns, V = a.weight.rows;
  std::vector<T> logits_memory(static_cast<std::size_t>(N * V));
  std::vector<T> losses_memory(static_cast<std::size_t>(N));
  const Rows<T> logits(logits_memory.data(), N, V);
  const Vec<T> losses = a.losses.empty() ? Vec<T>{losses_memory.data(), N} : a.losses;
  for (index n = 0; n < N; ++n)
    for (index v = 0; v < V; ++v) {
      T sum = a.bias.empty() ? T{0} : a.bias[v];
      for (index c = 0; c < C; ++c) sum += a.x[n][c] * a.weight[v][c];
      logits[n][v] = sum;
    }
  const CrossEntropy result = cross_entropy<T>(logits, a.targets, a.scale, losses, logits);
  for (index n = 0; n < a.dx.rows; ++n)
    for (index c = 0; c < C; ++c) {
      a.dx[n][c] = 0;
      for (index v = 0; v < V; ++v) a.dx[n][c] += logits[n][v] * a.weight[v][c];
    }
  for (index v = 0; v < a.dweight.rows; ++v)
    for (index c = 0; c < C; ++c) {
      if (a.dweight_store == Store::kWrite) a.dweight[v][c] = 0;
      for (index n = 0; n < N; ++n) a.dweight[v][c] += logits[n][v] * a.x[n][c];
    }
  for (index v = 0; v < a.dbias.size; ++v) {
    if (a.dbias_store == Store::kWrite) a.dbias[v] = 0;
    for (index n = 0; n < N; ++n) a.dbias[v] += logits[n][v];
  }
  return result;
}

template CrossEntropy cross_entropy(Rows<const float> logits, const Targets& targets, double scale,
                                    Vec<float> losses, Rows<float> dlogits);
template CrossEntropy cross_entropy(Rows<const double> logits, const Targets& targets, double scale,
                                    Vec<double> losses, Rows<double> dlogits);
template double binary_cross_entropy(Rows<const float>, const BinaryTargets<float>&, double,
                                     Vec<float>, Rows<float>);
template double binary_cross_entropy(Rows<const double>, const BinaryTargets<double>&, double,
                                     Vec<double>, Rows<double>);
template CrossEntropy linear_cross_entropy(const LinearCrossEntropy<float>& a);
template CrossEntropy linear_cross_entropy(const LinearCrossEntropy<double>& a);

}  // namespace fovea::reference
