// SPDX-License-Identifier: Apache-2.0
// A lambda as a score function. Its derivative is computed automatically, or given.
//
//   const auto cap = [](auto s) { return 30 * tanh(s / 30); };
//   const auto decay = [](auto s, const Place auto& at) { return s - 0.1 * abs(at.i - at.j); };
//   const Attention<float> attention{.bias = bias::of<float>(cap) + bias::of<float>(decay)};
//
// Write `auto`, and functions without std::. Such a lambda is called once per tile, with symbolic
// numbers that record its operations (traced.h); these run vectorised over the tile, forward and
// backward. For that it must not branch on a score or a place: use select(s > 0, s, 0.1 * s), min,
// max or abs. A lambda that branches, or that takes a ScoreSite, is called for each score, with
// dual numbers (dual.h): as exact, but several times slower.
#pragma once

#include <array>
#include <cstddef>
#include <string>
#include <type_traits>
#include <utility>

#include "fovea/attention/bias/bias.h"
#include "fovea/attention/lambda/symbols/dual.h"
#include "fovea/attention/lambda/symbols/place.h"
#include "fovea/attention/lambda/symbols/tape.h"
#include "fovea/attention/lambda/symbols/traced.h"

namespace fovea::detail {

/// value(), derivative() and add_parameters() are the definition; record() is the same function in
/// traced numbers. A function that cannot be recorded (it branches on a score or a place) runs by
/// its definition, score by score, and name() says so.
template <class T>
class RecordedFunction : public ScoreFunction<T> {
 public:
  explicit RecordedFunction(std::string name) : name_(std::move(name)) {}

  void apply(const TileSite& site, const TileRows<T>& rows, const ScoreTile<T>& tile) const final;
  void pull(const TileSite& site, const TileRows<T>& rows, const ScoreTile<T>& scores,
            const ScoreTile<T>& dscores, const TileGradients<T>& gradients) const final;
  std::string name() const final;

 protected:
  /// The new score. Learned numbers come from program.parameter(), in order.
  virtual Traced record(LaneTape& program, const PlaceOf<Traced>& place) const = 0;

 private:
  int record(LaneTape& program, const Sequence& sequence, index head) const;

  std::string name_;
};

}  // namespace fovea::detail

namespace fovea::bias {

/// The N learned parameters of a lambda, shared by the heads. They must outlive the calls.
template <class T, std::size_t N>
struct Learned {
  std::array<T, N>& values;
  std::array<T, N>& gradient;  ///< overwritten by the backward
};

}  // namespace fovea::bias

namespace fovea::detail {

template <class T>
class NamedFunction : public ScoreFunction<T> {
 public:
  explicit NamedFunction(std::string name) : name_(std::move(name)) {}
  std::string name() const final { return name_ + " (score by score: it takes a ScoreSite)"; }

 private:
  std::string name_;
};

/// Calls f with the arguments that it takes: score, place, learned numbers.
template <class F, class Number, class At, std::size_t N>
Number call_with(const F& f, const Number& s, const At& at, const std::array<Number, N>& p) {
  if constexpr (N > 0) {
    if constexpr (std::is_invocable_v<const F&, Number, const At&, decltype(p)>) {
      return f(s, at, p);
    } else {
      return f(s, p);
    }
  } else if constexpr (std::is_invocable_v<const F&, Number, const At&>) {
    return f(s, at);
  } else {
    return f(s);
  }
}

/// The definition of a lambda: f called with dual numbers. `At` is a ScoreSite or a Place.
template <class T, class F, std::size_t N, class Base, class At>
class ByDualNumbers : public Base {
 public:
  ByDualNumbers(F f, std::string name, bias::Learned<T, N>* learned = nullptr)
      : Base(std::move(name)),
        f_(std::move(f)),
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
  void name_parameters(OverlapCheck& memory) const override {
    memory.read("a learned number", Vec<const T>{values_, static_cast<index>(N)});
  }
  void name_gradients(OverlapCheck& memory) const override {
    memory.write("the gradient of a learned number", Vec<T>{gradient_, static_cast<index>(N)});
  }

 protected:
  const F& function() const { return f_; }
  T learned(std::size_t n) const { return values_[n]; }

 private:
  // With the derivative by parameter `which`, if there is such a one.
  Dual<T> call(const ScoreSite& site, Dual<T> score, std::size_t which = N) const {
    std::array<Dual<T>, N> p;
    for (std::size_t n = 0; n < N; ++n) p[n] = {values_[n], n == which ? T{1} : T{0}};
    return call_with(f_, score, At(site), p);
  }

  F f_;
  const T* values_;
  T* gradient_;
};

/// s -> f(s, site, p), called for each score. N = 0: s -> f(s, site).
template <class T, class F, std::size_t N = 0>
class Function final : public ByDualNumbers<T, F, N, NamedFunction<T>, const ScoreSite&> {
 public:
  using Function::ByDualNumbers::ByDualNumbers;
};

/// s -> f(s, place, p), vectorised. N = 0: s -> f(s, place). Without a place: f(s, p), f(s).
template <class T, class F, std::size_t N = 0>
class TracedFunction final : public ByDualNumbers<T, F, N, RecordedFunction<T>, PlaceOf<Dual<T>>> {
 public:
  using TracedFunction::ByDualNumbers::ByDualNumbers;

 protected:
  Traced record(LaneTape& program, const PlaceOf<Traced>& place) const override {
    std::array<Traced, N> p;
    for (std::size_t n = 0; n < N; ++n) {
      p[n] = program.parameter(static_cast<double>(this->learned(n)));
    }
    return call_with(this->function(), program.score(), place, p);
  }
};

/// s -> value(s, site), with d value / d s = derivative(s, site), given by the caller.
template <class T, class F, class D>
class FunctionWithDerivative final : public NamedFunction<T> {
 public:
  FunctionWithDerivative(F value, D derivative, std::string name)
      : NamedFunction<T>(std::move(name)),
        value_(std::move(value)),
        derivative_(std::move(derivative)) {}
  T value(const ScoreSite& site, T score) const override { return value_(score, site); }
  T derivative(const ScoreSite& site, T score) const override { return derivative_(score, site); }

 private:
  F value_;
  D derivative_;
};

template <class F, class T>
inline constexpr bool kIsScoreLambda =
    std::is_invocable_r_v<Dual<T>, const F&, Dual<T>, const ScoreSite&>;

/// A lambda from a dual number and its ScoreSite to a new score.
template <class F, class T>
concept ScoreLambda = kIsScoreLambda<F, T>;
/// A lambda from a number of any type, and optionally its Place, to a new score.
template <class F, class T>
concept TracedLambda = !ScoreLambda<F, T> &&
                       (std::is_invocable_r_v<Dual<T>, const F&, Dual<T>> ||
                        std::is_invocable_r_v<Dual<T>, const F&, Dual<T>, const PlaceOf<Dual<T>>&>);

/// Can F be called with the numbers of a lambda? With plain ones?
template <class F, class Number, class Place>
inline constexpr bool kTakes =
    std::is_invocable_v<const F&, Number> || std::is_invocable_v<const F&, Number, const Place&> ||
    std::is_invocable_v<const F&, Number, const ScoreSite&>;

}  // namespace fovea::detail

namespace fovea::bias {

/// f(s, site) -> new score, where s is a Dual<T>: write the parameter as `auto`, and functions
/// without std::, as in tanh(s). Fused forward and backward; called for each score.
template <class T, detail::ScoreLambda<T> F>
auto of(F f, std::string name = "function") {
  return detail::Function<T, F>(std::move(f), std::move(name));
}

/// f(s) or f(s, place) -> new score: [](auto s, const Place auto& at). Vectorised.
template <class T, detail::TracedLambda<T> F>
auto of(F f, std::string name = "function") {
  return detail::TracedFunction<T, F>(std::move(f), std::move(name));
}

/// Refuses any other function and says what to write.
template <class T, class F>
requires(!detail::ScoreLambda<F, T> &&
         !detail::TracedLambda<F, T>) Bias<T> of(F, std::string = "function") {
  constexpr bool symbolic = detail::kTakes<F, detail::Dual<T>, detail::PlaceOf<detail::Dual<T>>>;
  constexpr bool plain = !symbolic && detail::kTakes<F, T, detail::PlaceOf<detail::Dual<T>>>;
  static_assert(
      !plain,
      "take the score as `auto s`; its functions are abs, min, max, exp, log, tanh, sqrt, "
      "sin, cos and select, without std::");
  static_assert(!symbolic, "a score function returns the new score");
  static_assert(
      plain || symbolic,
      "a score function is [](auto s), [](auto s, const Place auto& at) or "
      "[](auto s, const ScoreSite& site); a ScoreSite has plain numbers, for what a Place "
      "cannot do, as table[site.j]");
  return {};
}

template <class F>
Bias<float> of(F) {
  static_assert(detail::kNever<F>,
                "name the type of the scores: bias::of<float>(...) or bias::of<double>(...)");
  return {};
}

/// f(s, place, p) or f(s, p) -> new score, where p[0] .. p[N - 1] are parameters that are learned.
/// With a ScoreSite for the place: a call for each score.
template <class T, std::size_t N, class F>
auto of(Learned<T, N> learned, F f, std::string name = "function") {
  using Parameters = const std::array<detail::Dual<T>, N>&;
  if constexpr (std::is_invocable_v<const F&, detail::Dual<T>, const ScoreSite&, Parameters>) {
    return detail::Function<T, F, N>(std::move(f), std::move(name), &learned);
  } else if constexpr (std::is_invocable_v<const F&, detail::Dual<T>, Parameters> ||
                       std::is_invocable_v<const F&, detail::Dual<T>,
                                           const detail::PlaceOf<detail::Dual<T>>&, Parameters>) {
    return detail::TracedFunction<T, F, N>(std::move(f), std::move(name), &learned);
  } else {
    static_assert(detail::kNever<F>,
                  "a score function that learns is [](auto s, const auto& p) or "
                  "[](auto s, const Place auto& at, const auto& p)");
    return Bias<T>();
  }
}

/// value(s, site) and derivative(s, site) of a number s of type T.
template <class T, class F, class D>
requires std::is_invocable_r_v<T, const D&, T, const ScoreSite&>
auto of(F value, D derivative, std::string name = "function") {
  return detail::FunctionWithDerivative<T, F, D>(std::move(value), std::move(derivative),
                                                 std::move(name));
}

}  // namespace fovea::bias
