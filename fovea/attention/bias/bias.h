// SPDX-License-Identifier: Apache-2.0
// What is done to a scaled score before the mask: biases, position schemes, score functions.
// They combine with +, and are applied in that order.
#pragma once

#include <string>

#include "fovea/attention/parts.h"
#include "fovea/attention/tile.h"
#include "fovea/base/context.h"

namespace fovea {

class Prefetch;
class TouchedMemory;

/// Who shares entries of a gradient that pull() adds to by itself.
struct SharedGradient {
  bool batch = false;  ///< the rows of the batch
  bool heads = false;  ///< the heads
};

/// One idea of what to add to a score, or to do with it; T is the lane type, float or double.
/// apply_one() and pull_one() are the definition, which the plain reference uses. apply() and
/// pull() do whole tiles, and may be overridden where it pays; they are tested against the
/// definition. A part that needs the score and its place alone derives from ScoreFunction.
template <class T>
class BiasPart {
 public:
  using Family = BiasPart;
  static constexpr const char* kFamily = "a bias";
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

  /// A gradient too large for sums of each head: pull() and pull_one() add to it by themselves, an
  /// entry of its own for each key. It becomes 0 here, before the first of them.
  virtual void start_gradient(const Context& ctx) const;
  /// Those who share its entries are computed one after another, in the same order for any number
  /// of threads.
  virtual SharedGradient shared_gradient() const { return {}; }

  /// The tile's scores, old to new. What the mask drops may hold anything.
  virtual void apply(const TileSite& site, const TileRows<T>& rows, const ScoreTile<T>& tile) const;
  /// `scores` holds what apply() read, `dscores` the gradient of what it wrote, which becomes the
  /// gradient of what it read. Scores that the mask drops have gradient 0.
  virtual void pull(const TileSite& site, const TileRows<T>& rows, const ScoreTile<T>& scores,
                    const ScoreTile<T>& dscores, const TileGradients<T>& gradients) const;
  /// Asks for what apply() will read of a tile, and for what pull() will add to, where it lies too
  /// far apart for the processor to foresee it. Nothing depends on it but time.
  virtual void expect_apply(const TileSite&, Prefetch&) const {}
  virtual void expect_pull(const TileSite&, Prefetch&) const {}
  /// Does the backward look at the score? (The one that a plain addition read does not matter; it
  /// is then given as 0.)
  virtual bool needs_scores() const { return true; }

  /// Does it make the score of the rows alone, and ignore the one it is given? It must stand first;
  /// then that one is 0: the product of q and k is not computed, and has no gradient.
  virtual bool makes_score() const { return false; }

  /// Names the memory of its parameters and that of their gradients, so that an overlap with what
  /// a call writes is noticed.
  virtual void touch_parameters(TouchedMemory&) const {}
  virtual void touch_gradients(TouchedMemory&) const {}
  /// Throws Error(kShape) unless the part fits the call. D is the width of the rows that it sees.
  virtual void check_shape(const AttentionSizes& sizes) const;
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

/// Zero or more parts, applied in order.
template <class T>
using Bias = Parts<BiasPart<T>>;

/// Does the first part make the score, so that there is no dot product of q and k?
template <class T>
bool makes_score(const Bias<T>& bias) {
  return !bias.empty() && bias.parts()[0]->makes_score();
}

}  // namespace fovea
