// SPDX-License-Identifier: Apache-2.0
// What is done to a scaled score before the mask: biases, position schemes, score functions.
// They combine with +, and are applied in that order.
#pragma once

#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "fovea/attention/tile.h"

namespace fovea {

/// One idea of what to add to a score, or to do with it; T is the lane type, float or double.
/// To add one: derive, define value() and derivative() (and add_parameters() if it has any); that
/// is the definition, which the plain reference uses. apply() and pull() do whole tiles, and may be
/// overridden where it pays; they are tested against the definition.
template <class T>
class BiasPart {
 public:
  using Value = T;
  virtual ~BiasPart() = default;

  /// The new score, given the old one.
  virtual T value(const ScoreSite& site, T score) const = 0;
  /// d value / d score. The default is 1: something is added.
  virtual T derivative(const ScoreSite& site, T score) const;

  /// How many sums the gradient of the part's parameters needs for one head.
  virtual index gradient_size() const { return 0; }
  /// Adds the gradient of the parameters to `sums`, for one score whose new value has gradient
  /// `dscore`.
  virtual void add_parameters(const ScoreSite& site, T score, T dscore, double* sums) const;
  /// Receives the finished sums [H, gradient_size()], in the same bits for any number of threads.
  virtual void store_gradient(const double* sums, index heads) const;

  /// The tile's scores, old to new.
  virtual void apply(const TileSite& site, const TileRows<T>& rows, const ScoreTile<T>& tile) const;
  /// `scores` holds what apply() read, `dscores` the gradient of what it wrote, which becomes the
  /// gradient of what it read. Scores that the mask drops have gradient 0.
  virtual void pull(const TileSite& site, const TileRows<T>& rows, const ScoreTile<T>& scores,
                    const ScoreTile<T>& dscores, const TileGradients<T>& gradients) const;
  /// Does pull() look at `scores`? (The score that a plain addition read does not matter.)
  virtual bool needs_scores() const { return true; }

  /// Throws Error(kShape) unless the part fits B, T, H and S.
  virtual void check_shape(index B, index T_, index H, index S) const;
  virtual std::string name() const = 0;
};

/// Zero or more parts, applied in order. Cheap to copy; parts are shared.
template <class T>
class Bias {
 public:
  Bias() = default;
  template <class Part>
  requires std::is_base_of_v<BiasPart<T>, Part> Bias(Part part)
      : parts_{std::make_shared<const Part>(std::move(part))} {}
  explicit Bias(std::shared_ptr<const BiasPart<T>> part) : parts_{std::move(part)} {}

  const std::vector<std::shared_ptr<const BiasPart<T>>>& parts() const { return parts_; }
  bool empty() const { return parts_.empty(); }
  std::string name() const;

  friend Bias operator+(Bias a, const Bias& b) {
    a.parts_.insert(a.parts_.end(), b.parts_.begin(), b.parts_.end());
    return a;
  }

 private:
  std::vector<std::shared_ptr<const BiasPart<T>>> parts_;
};

/// Two parts, in this order.
template <class A, class B>
requires std::is_base_of_v<BiasPart<typename A::Value>, A> &&
    std::is_base_of_v<BiasPart<typename A::Value>, B>
        Bias<typename A::Value>
operator+(A a, B b) {
  return Bias<typename A::Value>(std::move(a)) + Bias<typename A::Value>(std::move(b));
}

}  // namespace fovea
