// SPDX-License-Identifier: Apache-2.0
// Masks that keep keys at regular steps: dilated and strided (Child et al. 2019, section 4.3).
#pragma once

#include <string>

#include "fovea/attention/mask/band.h"

namespace fovea::detail {

/// A mask that depends only on the distance j - p of key and query.
class DistanceMask : public MaskPart {
 public:
  virtual bool keeps_distance(index distance) const = 0;

  bool keeps(const ScoreSite& site) const final { return keeps_distance(site.j - site.position()); }
  TileKind classify(const TileSite& site) const final;
  void apply(const TileSite& site, const ScoreTile<float>& tile) const final;
  void apply(const TileSite& site, const ScoreTile<double>& tile) const final;
};

}  // namespace fovea::detail

namespace fovea::mask {

/// Keeps every rate-th key, counted from the query: j = p + m rate. Throws Error(kShape) for a rate
/// below 1.
class Dilated final : public detail::DistanceMask {
 public:
  explicit Dilated(index rate);
  bool keeps_distance(index distance) const override { return distance % rate_ == 0; }
  std::string name() const override;

 private:
  index rate_;
};

/// Keeps j = p + m rate with -left <= m <= right; kOpen sets no limit on a side.
Mask dilated(index rate, index left, index right);

/// Keeps the keys near the query and every rate-th key beyond them: |j - p| < rate, or rate divides
/// j - p (Child et al. 2019, the union of both patterns; each key counts once). Throws
/// Error(kShape) for a rate below 1.
class Strided final : public detail::DistanceMask {
 public:
  explicit Strided(index rate);
  bool keeps_distance(index distance) const override {
    return (-rate_ < distance && distance < rate_) || distance % rate_ == 0;
  }
  std::string name() const override;

 private:
  index rate_;
};

}  // namespace fovea::mask
