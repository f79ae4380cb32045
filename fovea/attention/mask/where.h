// SPDX-License-Identifier: Apache-2.0
// A mask by a predicate of the caller, and optionally its result for whole tiles.
#pragma once

#include <functional>
#include <string>
#include <utility>

#include "fovea/attention/mask/mask.h"

namespace fovea::mask {

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
