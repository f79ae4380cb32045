// SPDX-License-Identifier: Apache-2.0
// Masks that keep an interval of keys around each query: causal, window, and their base.
#pragma once

#include <string>
#include <utility>

#include "fovea/attention/mask/mask.h"

namespace fovea {

/// No bound on this side.
inline constexpr index kOpen = -1;

/// Keeps key j of a query at position p where p - left <= j <= p + right.
class BandMask : public MaskPart {
 public:
  bool keeps(const ScoreSite& site) const override;
  TileKind classify(const TileSite& site) const override;
  void apply(const TileSite& site, const ScoreTile<float>& tile) const override;
  void apply(const TileSite& site, const ScoreTile<double>& tile) const override;
  std::pair<index, index> key_range(const Sequence& sequence, index head, index query,
                                    index queries) const override;
  std::pair<index, index> query_range(const Sequence& sequence, index head, index key,
                                      index keys) const override;

 protected:
  BandMask(index left, index right);
  index left_;   // kOpen: no bound
  index right_;  // kOpen: no bound

 private:
  template <class T>
  void apply_band(const TileSite& site, const ScoreTile<T>& tile) const;
};

namespace mask {

/// No mask at all (spec M11).
using All = Mask;

/// Keeps j <= p (spec M6). The alignment holds for every mask, bias and distance of the call; two
/// that differ are an error.
class Causal final : public BandMask {
 public:
  explicit Causal(Align align = Align::kBottomRight) : BandMask(kOpen, 0), align_(align) {}
  std::optional<Align> alignment() const override { return align_; }
  std::string name() const override;

 private:
  Align align_;
};

/// Keeps p - left <= j <= p + right; kOpen leaves a side open. Restricted attention costs
/// O(n (left + right + 1)) (spec A20). Throws Error(kShape) for a bound below kOpen.
class Window final : public BandMask {
 public:
  Window(index left, index right) : BandMask(left, right) {}
  std::string name() const override;
};

}  // namespace mask
}  // namespace fovea
