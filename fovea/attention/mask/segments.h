// SPDX-License-Identifier: Apache-2.0
// Which tokens of a row belong together: lengths, segments, padding.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "fovea/attention/mask/mask.h"
#include "fovea/base/few_numbers.h"

namespace fovea::mask {

// Lengths of the sequences of a padded batch, for keys and for queries. Padding is never
// read.

/// Keeps the first lengths[b] keys of batch row b; lengths [B], 0 allowed.
class KeyLengths final : public MaskPart {
 public:
  explicit KeyLengths(FewNumbers<std::int32_t> lengths) : lengths_(std::move(lengths)) {}
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
  FewNumbers<std::int32_t> lengths_;
};

/// The first lengths[b] queries of batch row b are real; later rows have output 0, gradient 0 and
/// log-sum-exp -inf.
class QueryLengths final : public MaskPart {
 public:
  explicit QueryLengths(FewNumbers<std::int32_t> lengths) : lengths_(std::move(lengths)) {}
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
  FewNumbers<std::int32_t> lengths_;
};

/// Both at once, for self-attention: queries and keys of batch row b are its first lengths[b].
inline Mask lengths(const FewNumbers<std::int32_t>& values) {
  return Mask(QueryLengths(values)) & Mask(KeyLengths(values));
}

/// Keeps key j of query i if their segment numbers are equal: for several documents in one row.
/// Positions do not restart at a new document. Queries [B, T], keys [B, S], any numbers. A tile is
/// skipped if the ranges of its queries' and its keys' numbers do not overlap. Views: the numbers
/// must outlive the mask.
class Segments final : public MaskPart {
 public:
  Segments(Rows<const std::int32_t> queries, Rows<const std::int32_t> keys)
      : queries_(queries), keys_(keys) {}
  bool keeps(const ScoreSite& site) const override;
  TileKind classify(const TileSite& site) const override;
  void apply(const TileSite& site, const ScoreTile<float>& tile) const override;
  void apply(const TileSite& site, const ScoreTile<double>& tile) const override;
  void name_memory(OverlapCheck& memory) const override;
  void check_shape(const AttentionSizes& sizes) const override;
  std::string name() const override { return "segments"; }

 private:
  const std::int32_t* queries_of(const Sequence& sequence) const {
    return queries_[sequence.batch] + sequence.query_row;
  }
  const std::int32_t* keys_of(const Sequence& sequence) const {
    return keys_[sequence.batch] + sequence.key_row;
  }
  template <class T>
  void apply_segments(const TileSite& site, const ScoreTile<T>& tile) const;

  Rows<const std::int32_t> queries_, keys_;
};

/// Keeps the keys whose id is not `pad`, anywhere in the row; ids [B, S], a view. Padding
/// counts for positions. If all padding is at the end, use lengths_of() and KeyLengths instead:
/// they are faster, never read padding, and do not count it for positions.
class NotPadding final : public MaskPart {
 public:
  explicit NotPadding(Rows<const std::int32_t> ids, std::int32_t pad = 0) : ids_(ids), pad_(pad) {}
  bool keeps(const ScoreSite& site) const override;
  TileKind classify(const TileSite& site) const override;
  void name_memory(OverlapCheck& memory) const override;
  void check_shape(const AttentionSizes& sizes) const override;
  std::string name() const override { return "not_padding"; }

 private:
  const std::int32_t* ids_of(const Sequence& sequence) const {
    return ids_[sequence.batch] + sequence.key_row;
  }

  Rows<const std::int32_t> ids_;
  std::int32_t pad_;
};

/// The length of each row of ids [B, S] without the padding at its end, for KeyLengths and
/// QueryLengths. Throws Error(kShape) if padding comes before a token.
std::vector<std::int32_t> lengths_of(Rows<const std::int32_t> ids, std::int32_t pad = 0);

}  // namespace fovea::mask
