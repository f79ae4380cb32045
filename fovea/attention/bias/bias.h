// SPDX-License-Identifier: Apache-2.0
// Parts that change a scaled score before the mask: biases, position encodings, score functions.
// They combine with +, and are applied in that order.
#pragma once

#include <algorithm>
#include <string>

#include "fovea/attention/parts.h"
#include "fovea/base/context.h"

namespace fovea {

class Prefetch;
/// Which axes share entries of a gradient that pull() adds to itself.
struct SharedGradient {
  bool batch = false;  ///< the rows of the batch
  bool heads = false;  ///< the heads
};

/// A part that changes a score. T is float or double. apply_one() and pull_one() are the
/// definition, which the plain reference uses. For speed also override apply() and pull(), which
/// work on whole tiles; tests compare them with the definition. A part that needs only the score
/// and its place derives from ScoreFunction instead.
template <class T>
class BiasPart {
 public:
  using Family = BiasPart;
  static constexpr const char* kFamily = "a bias";
  virtual ~BiasPart() = default;

  /// The new score, given the old one and its rows of q and k.
  virtual T apply_one(const ScoreSite& site, const ScoreRows<T>& rows, T score) const = 0;
  /// Returns the gradient of the old score, given `dscore`, the gradient of the new one. Adds to
  /// the gradients of the rows and of the parameters.
  virtual T pull_one(const ScoreSite& site, const ScoreRows<T>& rows, T score, T dscore,
                     const ScoreGradients<T>& gradients) const = 0;

  /// Number of sums per head for the gradient of the part's parameters.
  virtual index gradient_size() const { return 0; }
  /// Stores the finished sums [H, gradient_size()]; same bits for any number of threads.
  virtual void store_gradient(const double* sums, index heads) const;
  /// Whether each row of the batch has sums of its own: store_gradient() then gets those of B x H
  /// heads, batch by batch.
  virtual bool sums_by_batch() const { return false; }

  /// For a gradient too large for sums per head: pull() and pull_one() add to it themselves; keys
  /// must not share entries. This function sets it to 0 before the first of them.
  virtual void start_gradient(const Context& ctx) const;
  /// Sequences or heads that share entries are computed one after another, in the same order for
  /// any number of threads.
  virtual SharedGradient shared_gradient() const { return {}; }

  /// Changes the scores of a tile. Masked scores may hold anything.
  virtual void apply(const TileSite& site, const TileRows<T>& rows, const ScoreTile<T>& tile) const;
  /// `scores` holds the scores before apply(); `dscores` the gradient after it, to be replaced by
  /// the gradient before it. Masked scores have gradient 0.
  virtual void pull(const TileSite& site, const TileRows<T>& rows, const ScoreTile<T>& scores,
                    const ScoreTile<T>& dscores, const TileGradients<T>& gradients) const;
  /// Prefetches what apply() will read for a tile, or what pull() will add to, if the processor
  /// cannot predict these addresses. Affects speed only.
  virtual void prefetch_apply(const TileSite&, Prefetch&) const {}
  virtual void prefetch_pull(const TileSite&, Prefetch&) const {}
  /// Does the backward read the score? If false, pull() gets 0 in its place. A bias that is only
  /// added does not need it.
  virtual bool needs_scores() const { return true; }

  /// Do apply() and pull() read `rows`? If false, `rows` may be empty (without data).
  virtual bool needs_rows() const { return true; }

  /// Does it compute the score from the rows alone, and ignore the given one? Such a part stands
  /// first. The product of q and k is then not computed and has no gradient.
  virtual bool makes_score() const { return false; }

  /// Can it be part of a call of packed sequences?
  virtual bool takes_packed() const { return true; }

  /// Names the memory of its parameters and of their gradients, so that an output that overlaps it
  /// is an error.
  virtual void name_parameters(OverlapCheck&) const {}
  virtual void name_gradients(OverlapCheck&) const {}
  /// Throws Error(kShape) unless the part fits the call. D is the width of the rows that it gets.
  virtual void check_shape(const AttentionSizes& sizes) const;
  /// A call begins: what the part kept of an earlier one may be old. It has been checked.
  virtual void start_call() const {}
  virtual std::string name() const = 0;
};

/// A part that needs only the score and its place. To add one, define value() and derivative(), and
/// add_parameters() if it has parameters. An override of apply() or pull() must not read `rows`.
template <class T>
class ScoreFunction : public BiasPart<T> {
 public:
  /// The new score, given the old one.
  virtual T value(const ScoreSite& site, T score) const = 0;
  /// d value / d score. The default is 1, as for an added bias.
  virtual T derivative(const ScoreSite& site, T score) const;
  /// Adds the gradient of the parameters to `sums` [gradient_size()], for one score whose new value
  /// has gradient `dscore`.
  virtual void add_parameters(const ScoreSite& site, T score, T dscore, double* sums) const;

  bool needs_rows() const override { return false; }
  T apply_one(const ScoreSite& site, const ScoreRows<T>& rows, T score) const final;
  T pull_one(const ScoreSite& site, const ScoreRows<T>& rows, T score, T dscore,
             const ScoreGradients<T>& gradients) const final;
};

/// Zero or more parts, applied in order.
template <class T>
using Bias = Parts<BiasPart<T>>;

}  // namespace fovea

namespace fovea::detail {

/// Does any part read the rows of q and k?
template <class T>
bool needs_rows(const Bias<T>& bias) {
  const auto& parts = bias.parts();
  return std::any_of(parts.begin(), parts.end(), [](const auto& p) { return p->needs_rows(); });
}

/// Does the first part compute the score, so that no dot product of q and k is needed?
template <class T>
bool makes_score(const Bias<T>& bias) {
  return !bias.empty() && bias.parts()[0]->makes_score();
}

}  // namespace fovea::detail
