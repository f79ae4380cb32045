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
/// apply_one() and pull_one() are the definition, which the plain reference uses. apply() and
/// pull() do whole tiles, and may be overridden where it pays; they are tested against the
/// definition. A part that needs the score and its place alone derives from ScoreFunction.
template <class T>
class BiasPart {
 public:
  using Value = T;
  virtual ~BiasPart() = default;

  /// The new score, given the old one and the rows behind it.
  virtual T apply_one(const ScoreSite& site, const ScoreRows<T>& rows, T score) const = 0;
  /// Returns the gradient of the score that apply_one() read, given that of what it returned. Adds
  /// to the gradients of the rows and of the parameters.
  virtual T pull_one(const ScoreSite& site, const ScoreRows<T>& rows, T score, T dscore,
                     const ScoreGradients<T>& gradients) const = 0;

  /// How many sums the gradient of the part's parameters needs for one head.
  virtual index gradient_size() const { return 0; }
  /// Receives the finished sums [H, gradient_size()], in the same bits for any number of threads.
  virtual void store_gradient(const double* sums, index heads) const;

  /// The tile's scores, old to new.
  virtual void apply(const TileSite& site, const TileRows<T>& rows, const ScoreTile<T>& tile) const;
  /// `scores` holds what apply() read, `dscores` the gradient of what it wrote, which becomes the
  /// gradient of what it read. Scores that the mask drops have gradient 0.
  virtual void pull(const TileSite& site, const TileRows<T>& rows, const ScoreTile<T>& scores,
                    const ScoreTile<T>& dscores, const TileGradients<T>& gradients) const;
  /// Does the backward look at the score? (The one that a plain addition read does not matter; it
  /// is then given as 0.)
  virtual bool needs_scores() const { return true; }

  /// Throws Error(kShape) unless the part fits B, T, H and S.
  virtual void check_shape(index B, index T_, index H, index S) const;
  virtual std::string name() const = 0;
};

/// A part for which the score and its place are enough. To add one: define value() and
/// derivative(), and add_parameters() if it has any.
template <class T>
class ScoreFunction : public BiasPart<T> {
 public:
  /// The new score, given the old one.
  virtual T value(const ScoreSite& site, T score) const = 0;
  /// d value / d score. The default is 1: something is added.
  virtual T derivative(const ScoreSite& site, T score) const;
  /// Adds the gradient of the parameters to `sums` [gradient_size()], for one score whose new value
  /// has gradient `dscore`.
  virtual void add_parameters(const ScoreSite& site, T score, T dscore, double* sums) const;

  T apply_one(const ScoreSite& site, const ScoreRows<T>& rows, T score) const final;
  T pull_one(const ScoreSite& site, const ScoreRows<T>& rows, T score, T dscore,
             const ScoreGradients<T>& gradients) const final;
};

/// Zero or more parts, applied in order. Cheap to copy; parts are shared.
template <class T>
class Bias {
 public:
  Bias() = default;
  template <class Part>
  requires std::is_base_of_v<BiasPart<T>, Part> Bias(Part part)
      : parts_{std::make_shared<const Part>(std::move(part))} {}
  /// Throws Error(kShape) for no part at all.
  explicit Bias(std::shared_ptr<const BiasPart<T>> part);

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
