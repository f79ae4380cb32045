// SPDX-License-Identifier: Apache-2.0
// A lambda as a score function: its derivative by dual numbers, or given.
//
//   const auto cap = [](auto s, const ScoreSite&) { return 30 * tanh(s / 30); };
//   const Attention<float> attention{.bias = bias::of<float>(cap)};
#pragma once

#include <array>
#include <cstddef>
#include <string>
#include <type_traits>
#include <utility>

#include "fovea/attention/bias/bias.h"
#include "fovea/attention/bias/dual.h"

namespace fovea::bias {

/// What a lambda learns: N parameters, shared by the heads. The views must outlive the calls.
template <class T, std::size_t N>
struct Learned {
  std::array<T, N>& values;
  std::array<T, N>& gradient;  ///< overwritten by the backward
};

/// s -> f(s, site, p), with s and the parameters p as dual numbers. N = 0: s -> f(s, site).
template <class T, class F, std::size_t N = 0>
class Function final : public ScoreFunction<T> {
 public:
  Function(F f, std::string name, Learned<T, N>* learned = nullptr)
      : f_(std::move(f)),
        name_(std::move(name)),
        values_(learned == nullptr ? nullptr : learned->values.data()),
        gradient_(learned == nullptr ? nullptr : learned->gradient.data()) {}

  T value(const ScoreSite& site, T score) const override { return call(site, {score}).value; }
  T derivative(const ScoreSite& site, T score) const override {
    return call(site, {score, T{1}}).derivative;
  }
  index gradient_size() const override { return static_cast<index>(N); }
  void add_parameters(const ScoreSite& site, T score, T dscore, double* sums) const override {
    for (std::size_t n = 0; n < N; ++n) {
      sums[n] += static_cast<double>(dscore * call(site, {score}, n).derivative);
    }
  }
  void store_gradient(const double* sums, index heads) const override {
    for (std::size_t n = 0; n < N; ++n) {
      double total = 0;
      for (index h = 0; h < heads; ++h) total += sums[static_cast<std::size_t>(h) * N + n];
      gradient_[n] = static_cast<T>(total);
    }
  }
  std::string name() const override { return name_; }

 private:
  // With the derivative towards parameter `which`, if it is one.
  Dual<T> call(const ScoreSite& site, Dual<T> score, std::size_t which = N) const {
    if constexpr (N == 0) {
      return f_(score, site);
    } else {
      std::array<Dual<T>, N> p;
      for (std::size_t n = 0; n < N; ++n) p[n] = {values_[n], n == which ? T{1} : T{0}};
      return f_(score, site, p);
    }
  }

  F f_;
  std::string name_;
  const T* values_;
  T* gradient_;
};

/// s -> value(s, site), with d value / d s = derivative(s, site) as the caller gives it.
template <class T, class F, class D>
class FunctionWithDerivative final : public ScoreFunction<T> {
 public:
  FunctionWithDerivative(F value, D derivative, std::string name)
      : value_(std::move(value)), derivative_(std::move(derivative)), name_(std::move(name)) {}
  T value(const ScoreSite& site, T score) const override { return value_(score, site); }
  T derivative(const ScoreSite& site, T score) const override { return derivative_(score, site); }
  std::string name() const override { return name_; }

 private:
  F value_;
  D derivative_;
  std::string name_;
};

template <class F, class T>
inline constexpr bool kIsScoreLambda =
    std::is_invocable_r_v<Dual<T>, const F&, Dual<T>, const ScoreSite&>;

/// A lambda that makes a new score of a dual number and its place.
template <class F, class T>
concept ScoreLambda = kIsScoreLambda<F, T>;

/// f(s, site) -> new score, where s is a Dual<T>: write the parameter as `auto`, and functions
/// without std::, as in tanh(s). Fused forward and backward.
template <class T, ScoreLambda<T> F>
auto of(F f, std::string name = "function") {
  return Function<T, F>(std::move(f), std::move(name));
}

/// f(s, site, p) -> new score, where p[0] .. p[N - 1] are parameters that are learned.
template <class T, std::size_t N, class F>
auto of(Learned<T, N> learned, F f, std::string name = "function") {
  return Function<T, F, N>(std::move(f), std::move(name), &learned);
}

/// value(s, site) and derivative(s, site) of a number s of type T.
template <class T, class F, class D>
requires std::is_invocable_r_v<T, const D&, T, const ScoreSite&>
auto of(F value, D derivative, std::string name = "function") {
  return FunctionWithDerivative<T, F, D>(std::move(value), std::move(derivative), std::move(name));
}

}  // namespace fovea::bias
