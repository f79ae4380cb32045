// SPDX-License-Identifier: Apache-2.0
// Masks that the caller gives score by score: as bytes, or as a predicate.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <utility>

#include "fovea/attention/mask/mask.h"

namespace fovea::detail {

enum class Polarity { kKeep, kDrop };

/// The polarity says what nonzero means, of bytes or bools. Shape [B or 1, H or 1, T or 1, S]; axes
/// of size 1 broadcast. A view: the caller's values must outlive the mask. Packed sequences: batch
/// 1, rows and columns packed; entries between sequences are ignored.
class DenseMask : public MaskPart {
 public:
  bool keeps(const ScoreSite& site) const override;
  void apply(const TileSite& site, const ScoreTile<float>& tile) const override;
  void apply(const TileSite& site, const ScoreTile<double>& tile) const override;
  void name_memory(OverlapCheck& memory) const override;
  void check_shape(const AttentionSizes& sizes) const override;

 protected:
  DenseMask(ScoreView<const std::uint8_t> values, Polarity polarity)
      : values_(values), polarity_(polarity) {}
  DenseMask(ScoreView<const bool> values, Polarity polarity);

 private:
  const std::uint8_t* row(const Sequence& sequence, index head, index i) const;
  template <class T>
  void apply_dense(const TileSite& site, const ScoreTile<T>& tile) const;

  ScoreView<const std::uint8_t> values_;
  Polarity polarity_;
};

}  // namespace fovea::detail

namespace fovea::mask {

/// Nonzero = kept. A call that its shape does not fit throws Error(kShape).
class Keep final : public detail::DenseMask {
 public:
  explicit Keep(ScoreView<const std::uint8_t> values)
      : DenseMask(values, detail::Polarity::kKeep) {}
  explicit Keep(ScoreView<const bool> values) : DenseMask(values, detail::Polarity::kKeep) {}
  std::string name() const override { return "keep"; }
};

/// Nonzero = dropped. All other masks say what is kept. Throws as Keep does.
class Drop final : public detail::DenseMask {
 public:
  explicit Drop(ScoreView<const std::uint8_t> values)
      : DenseMask(values, detail::Polarity::kDrop) {}
  explicit Drop(ScoreView<const bool> values) : DenseMask(values, detail::Polarity::kDrop) {}
  std::string name() const override { return "drop"; }
};

/// Keeps the scores for which `keep` is true. `kind`, if given, classifies whole tiles, so that
/// tiles that keep nothing are skipped. It must agree with `keep`.
class Where final : public MaskPart {
 public:
  explicit Where(std::function<bool(const ScoreSite&)> keep,
                 std::function<TileKind(const TileSite&)> kind = {}, std::string name = "where")
      : keep_(std::move(keep)), kind_(std::move(kind)), name_(std::move(name)) {}
  bool keeps(const ScoreSite& site) const override { return keep_(site); }
  TileKind classify(const TileSite& site) const override {
    return kind_ ? kind_(site) : TileKind::kSome;
  }
  std::string name() const override { return name_; }

 private:
  std::function<bool(const ScoreSite&)> keep_;
  std::function<TileKind(const TileSite&)> kind_;
  std::string name_;
};

}  // namespace fovea::mask
