// SPDX-License-Identifier: Apache-2.0
// Lengths of the sequences of a padded batch, for keys and for queries. Padding is never
// read.
#pragma once

#include <cstdint>
#include <string>
#include <utility>

#include "fovea/attention/mask/mask.h"
#include "fovea/base/view.h"

namespace fovea::mask {

/// Keeps the first lengths[b] keys of batch row b; lengths [B], 0 allowed. A view: the caller's
/// lengths must outlive the mask.
class KeyLengths final : public MaskPart {
 public:
  explicit KeyLengths(Vec<const std::int32_t> lengths) : lengths_(lengths) {}
  bool keeps(const ScoreSite& site) const override;
  TileKind classify(const TileSite& site) const override;
  void limit(Sequence& sequence) const override;
  std::pair<index, index> key_range(const Sequence& sequence, index head, index query,
                                    index queries) const override;
  bool keeps_key_range() const override { return true; }
  KeptPrefix kept_prefix() const override { return KeptPrefix::kAll; }
  void name_memory(OverlapCheck& memory) const override;
  void check_shape(const AttentionSizes& sizes) const override;
  std::string name() const override { return "key_lengths"; }

 private:
  Vec<const std::int32_t> lengths_;
};

/// The first lengths[b] queries of batch row b are real; later rows have output 0, gradient 0 and
/// log-sum-exp -inf.
class QueryLengths final : public MaskPart {
 public:
  explicit QueryLengths(Vec<const std::int32_t> lengths) : lengths_(lengths) {}
  bool keeps(const ScoreSite& site) const override;
  TileKind classify(const TileSite& site) const override;
  void limit(Sequence& sequence) const override;
  std::pair<index, index> key_range(const Sequence& sequence, index head, index query,
                                    index queries) const override;
  bool keeps_key_range() const override { return true; }
  KeptPrefix kept_prefix() const override { return KeptPrefix::kAll; }
  void name_memory(OverlapCheck& memory) const override;
  void check_shape(const AttentionSizes& sizes) const override;
  std::string name() const override { return "query_lengths"; }

 private:
  Vec<const std::int32_t> lengths_;
};

/// Both at once, for self-attention: queries and keys of batch row b are its first lengths[b].
inline Mask lengths(Vec<const std::int32_t> values) {
  return Mask(QueryLengths(values)) & Mask(KeyLengths(values));
}

}  // namespace fovea::mask
