// SPDX-License-Identifier: Apache-2.0
// The keys and values that forward tiles read, for one instruction set.
#include <algorithm>

#include "fovea/attention/fused/query_tiles.h"
#include "fovea/attention/fused/tile_cover.h"
#include "fovea/base/memory.h"

#if defined(FOVEA_ATTENTION_FUSED_KV_BLOCK_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef FOVEA_ATTENTION_FUSED_KV_BLOCK_INL_H_
#undef FOVEA_ATTENTION_FUSED_KV_BLOCK_INL_H_
#else
#define FOVEA_ATTENTION_FUSED_KV_BLOCK_INL_H_
#endif

#include "fovea/simd/pairs-inl.h"
#include "fovea/simd/product-inl.h"
#include "fovea/simd/rows-inl.h"

HWY_BEFORE_NAMESPACE();
namespace fovea::detail {
namespace HWY_NAMESPACE {

/// The lanes of this instruction set.
template <class T>
LaneCounts LanesOf() {
  return {kLanes<Wide<T>>, kPanelLanes<Wide<T>>};
}

/// Keys and values of a head, in a form that stays in the caches. A product reads all rows
/// of a block once for each panel of its lanes. The distance between rows of one head is the width
/// of all heads together, often a multiple of 1024 bytes: then most rows share a few sets of L1 and
/// come from L2 each time. If a tile has several panels, a copy of the block is read instead.
/// Measured with floats and whole tiles: AVX2 takes .80 to .90 of the time for the two products of
/// a block of 8 heads; AVX-512, whose tile is one panel, gains nothing. There a run of many queries
/// reads a copy of all keys (copies_all_keys).
template <class T>
class KvBlocks {
 public:
  KvBlocks(const HeadKeys<T>& head, const KvSizes& sizes, Scratch& scratch)
      : head_(head), by_block_(sizes.rows > 0 && !sizes.all) {
    if (sizes.rows == 0) return;
    k_.rows = {scratch.allocate<T>(sizes.k), sizes.rows, head.k.columns};
    v_.rows = {scratch.allocate<T>(sizes.v), sizes.rows, head.v.columns};
    if (by_block_) return;
    CopyRows(head.k, k_.rows);
    CopyRows(head.v, v_.rows);
    head_.k = k_.rows;
    head_.v = v_.rows;
  }

  const HeadKeys<T>& head() const { return head_; }
  index end() const { return head_.first + head_.k.rows; }
  /// The rows of keys [key, key + keys), at most kRowBlock; valid until the next call.
  Rows<const T> k(index key, index keys) { return Block(head_.k, key, keys, k_); }
  Rows<const T> v(index key, index keys) { return Block(head_.v, key, keys, v_); }
  /// The values as a left operand, [Dv, keys].
  StridedMatrix<T> v_across(index key, index keys) { return Transposed(v(key, keys)); }

 private:
  struct Copy {
    Rows<T> rows;
    Span keys;  // the keys that it holds
  };

  Rows<const T> Block(const Rows<const T>& all, index key, index keys, Copy& copy) {
    const Rows<const T> rows = all.slice(key - head_.first, key - head_.first + keys);
    if (!by_block_ || rows.contiguous()) return rows;
    if (key < copy.keys.begin || copy.keys.end < key + keys) {
      CopyRows(rows, copy.rows);
      copy.keys = {key, key + keys};
    }
    return copy.rows.slice(key - copy.keys.begin, key - copy.keys.begin + keys);
  }

  HeadKeys<T> head_;
  bool by_block_;  // whether a block is copied when it is read
  Copy k_, v_;
};

#if FOVEA_PAIRS
/// Keys as pairs along D, read in place where reads_in_place() says so; values as pairs along the
/// keys. Those of all keys, or of a block for the tiles that run together (pair_sizes). For tile
/// registers, which read the pairs of a left operand side by side, values are turned beside that:
/// for each kRowBlock keys of the sequence a block [Dv, pairs of keys].
template <>
class KvBlocks<BFloat16> {
 public:
  KvBlocks(const HeadKeys<BFloat16>& head, const KvSizes& sizes, Scratch& scratch)
      : head_(head), in_place_(sizes.k == 0) {
    const index D = head.k.columns, Dv = head.v.columns;
    if (!in_place_) {
      k_ = {scratch.allocate<BFloat16Pair>(sizes.k), sizes.rows, operands_of<BFloat16>(D)};
    }
    v_ = {scratch.allocate<BFloat16Pair>(sizes.v), operands_of<BFloat16>(sizes.rows), Dv,
          RoundUpToLanes<float>(Dv)};
    if (sizes.turned > 0) turned_ = scratch.allocate<BFloat16Pair>(sizes.turned);
    if (sizes.all) Pair(head.first, head.k.rows);
  }

  const HeadKeys<BFloat16>& head() const { return head_; }
  index end() const { return head_.first + head_.k.rows; }
  /// [keys, pairs of D]; `key` is even.
  Rows<const BFloat16Pair> k(index key, index keys) {
    const auto rows = head_.k.slice(key - head_.first, key - head_.first + keys);
    if (in_place_) return InPlace(rows);
    Make(key, keys);
    return Rows<const BFloat16Pair>(k_).slice(key - made_.begin, key - made_.begin + keys);
  }
  /// [pairs of keys, Dv]
  Rows<const BFloat16Pair> v(index key, index keys) {
    Make(key, keys);
    const index first = (key - made_.begin) / 2;
    return Rows<const BFloat16Pair>(v_).slice(first, first + operands_of<BFloat16>(keys));
  }
  /// [Dv, pairs of keys], of one block.
  StridedMatrix<BFloat16Pair> v_across(index key, index keys) {
    if (turned_ == nullptr) return Transposed(v(key, keys));
    Make(key, keys);
    return {Turned(key), kPairsOfBlock, 1};
  }
  /// The keys themselves.
  Rows<const BFloat16> key_rows(index key, index keys) const {
    return head_.k.slice(key - head_.first, key - head_.first + keys);
  }

 private:
  static constexpr index kPairsOfBlock = kRowBlock / 2;

  static Rows<const BFloat16Pair> InPlace(const Rows<const BFloat16>& rows) {
    return {reinterpret_cast<const BFloat16Pair*>(rows.data), rows.rows, rows.columns / 2,
            rows.stride / 2};
  }
  void Make(index key, index keys) {
    if (key < made_.begin || made_.end < key + keys) Pair(key, keys);
  }
  void Pair(index key, index keys) {
    const index first = key - head_.first;
    if (!in_place_) CopyAsPairs(head_.k.slice(first, first + keys), k_);
    PairRows(head_.v.slice(first, first + keys), v_);
    made_ = {key, key + keys};
    if (turned_ != nullptr) Turn();
  }
  void Turn() {
    for (index key = made_.begin; key < made_.end;) {
      const index end = std::min(made_.end, (key / kRowBlock + 1) * kRowBlock);
      const Rows<const BFloat16Pair> pairs = v(key, end - key);
      TurnRows(Transposed(pairs), pairs.columns, pairs.rows, Turned(key), kPairsOfBlock);
      key = end;
    }
  }
  // The pairs of `key` and of those behind it in its block.
  BFloat16Pair* Turned(index key) const {
    const index block = key / kRowBlock - made_.begin / kRowBlock;
    return turned_ + block * head_.v.columns * kPairsOfBlock + key % kRowBlock / 2;
  }

  HeadKeys<BFloat16> head_;
  bool in_place_;
  Rows<BFloat16Pair> k_, v_;
  BFloat16Pair* turned_ = nullptr;
  Span made_;  // the keys that all these hold
};
#endif

}  // namespace HWY_NAMESPACE
}  // namespace fovea::detail
HWY_AFTER_NAMESPACE();

#endif  // FOVEA_ATTENTION_FUSED_KV_BLOCK_INL_H_
