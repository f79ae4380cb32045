// SPDX-License-Identifier: Apache-2.0
// Masks that keep an interval of keys around each query: causal, past, windows, and their base.
#pragma once

#include <cstdint>
#include <string>
#include <utility>

#include "fovea/attention/mask/mask.h"
#include "fovea/base/view.h"

namespace fovea {

/// No bound on this side.
inline constexpr index kOpen = -1;

/// How many keys a band keeps on either side of a query's position; kOpen: all.
struct Reach {
  index left = kOpen;
  index right = kOpen;
};

}  // namespace fovea

namespace fovea::detail {

/// Keeps key j of a query at position p if p - left <= j <= p + right. The reach may differ between
/// heads.
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
  bool keeps_key_range() const override { return true; }

 protected:
  virtual Reach reach(index head) const = 0;
  /// The reach with numbers in place of kOpen.
  virtual Reach finite_reach(index head) const;

 private:
  template <class T>
  void apply_band(const TileSite& site, const ScoreTile<T>& tile) const;
};

}  // namespace fovea::detail

namespace fovea::mask {

/// No mask at all.
using All = Mask;

/// Keeps j <= p. The alignment applies to every mask, bias and distance of the call;
/// different ones in one call are an error.
class Causal final : public detail::BandMask {
 public:
  explicit Causal(Align align = Align::kBottomRight) : align_(align) {}
  KeptPrefix kept_prefix() const override { return KeptPrefix::kToPosition; }
  std::optional<Align> alignment() const override { return align_; }
  std::string name() const override;

 private:
  Reach reach(index) const override { return {.left = kOpen, .right = 0}; }

  Align align_;
};

/// Keeps j < p: the keys before the query, without its own (the history of the published attention
/// RNN: nn/attention_rnn.h). The first query keeps no key.
class Past final : public detail::BandMask {
 public:
  std::string name() const override { return "past"; }

 private:
  Reach reach(index) const override { return {.left = kOpen, .right = 0}; }
  Reach finite_reach(index head) const override;
};

/// Keeps p - left <= j <= p + right (Vaswani et al. 2017, section 4); kOpen: no limit on a side.
/// Takes O(T (left + right + 1)) time. Throws Error(kShape) for a bound below kOpen.
class Window final : public detail::BandMask {
 public:
  Window(index left, index right);
  std::string name() const override;

 private:
  Reach reach(index) const override { return reach_; }

  Reach reach_;
};

/// A window for each head: row h of [H, 2] holds its left and right. A view: the caller's bounds
/// must outlive the mask.
class HeadWindows final : public detail::BandMask {
 public:
  explicit HeadWindows(Rows<const std::int32_t> bounds) : bounds_(bounds) {}
  void name_memory(OverlapCheck& memory) const override;
  void check_shape(const AttentionSizes& sizes) const override;
  std::string name() const override { return "head_windows"; }

 private:
  Reach reach(index head) const override { return {bounds_[head][0], bounds_[head][1]}; }

  Rows<const std::int32_t> bounds_;
};

}  // namespace fovea::mask
