// SPDX-License-Identifier: Apache-2.0
// A mask by blocks of queries and keys: lists say which are kept whole, and which in part.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "fovea/attention/mask/mask.h"

namespace fovea::mask {

/// The kind of each block, [B or 1, H or 1, blocks of queries, blocks of keys]: what TileKind says.
struct BlockKinds {
  const std::uint8_t* data;
  index batch, heads, query_blocks, key_blocks;
  index query_block, key_block;  ///< the size of a block; those at the ends may be smaller
};

/// Keeps the blocks of kind kAll, and what `inside` keeps of those of kind kSome: without it, all.
class Blocks final : public MaskPart {
 public:
  /// `kinds` must outlive it.
  Blocks(const BlockKinds& kinds, std::shared_ptr<const MaskPart> inside);

  bool keeps(const ScoreSite& site) const override;
  TileKind classify(const TileSite& site) const override;
  void apply(const TileSite& site, const ScoreTile<float>& tile) const override;
  void apply(const TileSite& site, const ScoreTile<double>& tile) const override;
  std::pair<index, index> key_range(const Sequence& sequence, index head, index query,
                                    index queries) const override;
  std::pair<index, index> query_range(const Sequence& sequence, index head, index key,
                                      index keys) const override;
  void check_shape(const AttentionSizes& sizes) const override;
  std::string name() const override { return "blocks"; }

 private:
  TileKind kind(index batch, index head, index query_block, index key_block) const;
  TileKind kind_inside(const TileSite& part) const;
  template <class T>
  void apply_blocks(const TileSite& site, const ScoreTile<T>& tile) const;
  template <class F>
  void for_each_part(const TileSite& site, const F& f) const;

  BlockKinds kinds_;
  std::shared_ptr<const MaskPart> inside_;
};

}  // namespace fovea::mask
