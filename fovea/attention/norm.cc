// SPDX-License-Identifier: Apache-2.0
#include "fovea/attention/norm.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace fovea {

std::string name_of(const Norm& norm) {
  constexpr std::array<const char*, std::variant_size_v<Norm>> kNames = {"softmax", "sigmoid",
                                                                         "none"};
  return kNames[norm.index()];
}

namespace {

// A weight without softmax, from its score; and d weight / d score, from the weight.
template <class T>
T weight_of(norm::Sigmoid, T score) {
  // Not 1 / (1 + exp(-score)), which overflows for negative scores.
  const T e = std::exp(-std::abs(score));
  return (score < T{0} ? e : T{1}) / (T{1} + e);
}
template <class T>
T slope_of(norm::Sigmoid, T weight) {
  return weight * (T{1} - weight);
}
template <class T>
T weight_of(norm::None, T score) {
  return score;
}
template <class T>
T slope_of(norm::None, T) {
  return T{1};
}

}  // namespace

template <class T>
T RowNorm<T>::total(T m, T l) const {
  return l + std::exp(sink - m);
}

template <class T>
T RowNorm<T>::weight(T score, T m, T l) const {
  if (score == -std::numeric_limits<T>::infinity()) return T{0};
  const auto visit = [&]<class One>(One one) {
    if constexpr (One::kNeedsLse) {
      return std::exp(score - m) / total(m, l);
    } else {
      return weight_of(one, score);
    }
  };
  return std::visit(visit, norm);
}

// The gradient of softmax is dS = P (dP - delta), delta = sum P dP (Dao et al. 2022, B.4).
template <class T>
T RowNorm<T>::dscore(T weight, T dweight, T delta) const {
  const auto visit = [&]<class One>(One one) {
    if constexpr (One::kNeedsLse) {
      return weight * (dweight - delta);
    } else {
      return slope_of(one, weight) * dweight;
    }
  };
  return std::visit(visit, norm);
}

// Uses the sink instead of m if it is larger: exp(sink - m) may overflow, although lse does not.
// Without a sink there is nothing to add; two exponentials a row are a tenth of a short call.
template <class T>
RowLse<T> RowNorm<T>::lse(T m, T l) const {
  double most = static_cast<double>(m), total = static_cast<double>(l);
  if (sink != -std::numeric_limits<T>::infinity()) {
    most = std::max(most, static_cast<double>(sink));
    total *= std::exp(static_cast<double>(m) - most);
    total += std::exp(static_cast<double>(sink) - most);
  }
  const double above = std::log(total);
  const T value = static_cast<T>(most + above);
  if (value == -std::numeric_limits<T>::infinity()) return {value, T{0}};
  // The larger term minus the sum is exact (Dekker 1971), so `above` is not lost, however large
  // `most` is.
  const auto [small, large] =
      std::minmax(most, above, [](double a, double b) { return std::abs(a) < std::abs(b); });
  return {value, static_cast<T>((large - static_cast<double>(value)) + small)};
}

template struct RowNorm<float>;
template struct RowNorm<double>;

}  // namespace fovea
