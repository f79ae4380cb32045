// SPDX-License-Identifier: Apache-2.0
#include "fovea/attention/mask/blocks.h"

#include <algorithm>
#include <limits>

#include "fovea/base/check.h"

namespace fovea::mask {

Blocks::Blocks(const BlockKinds& kinds, std::shared_ptr<const MaskPart> inside)
    : kinds_(kinds), inside_(std::move(inside)) {
  check(kinds.query_block > 0 && kinds.key_block > 0,
        "attention: blocks of {} queries and {} keys; both must be positive", kinds.query_block,
        kinds.key_block);
}

TileKind Blocks::kind(index batch, index head, index query_block, index key_block) const {
  const auto& [data, B, H, rows, columns, q, k] = kinds_;
  const index b = B == 1 ? 0 : batch, h = H == 1 ? 0 : head;
  return static_cast<TileKind>(data[((b * H + h) * rows + query_block) * columns + key_block]);
}

bool Blocks::keeps(const ScoreSite& site) const {
  switch (kind(site.sequence.number, site.head, site.i / kinds_.query_block,
               site.j / kinds_.key_block)) {
    case TileKind::kNone:
      return false;
    case TileKind::kAll:
      return true;
    default:
      return inside_ == nullptr || inside_->keeps(site);
  }
}

// Calls f(part, kind of its block) for the parts of a tile that are in one block each.
template <class F>
void Blocks::for_each_part(const TileSite& site, const F& f) const {
  const index q = kinds_.query_block, k = kinds_.key_block;
  const index last_query = site.query + site.queries, last_key = site.key + site.keys;
  for (index query = site.query; query < last_query;) {
    const index queries = std::min(q - query % q, last_query - query);
    for (index key = site.key; key < last_key;) {
      const index keys = std::min(k - key % k, last_key - key);
      f(TileSite{site.sequence, site.head, query, queries, key, keys},
        kind(site.sequence.number, site.head, query / q, key / k));
      key += keys;
    }
    query += queries;
  }
}

// The kind of a part of a block of kind kSome.
TileKind Blocks::kind_inside(const TileSite& part) const {
  return inside_ == nullptr ? TileKind::kAll : inside_->classify(part);
}

TileKind Blocks::classify(const TileSite& site) const {
  bool none = true, all = true;
  for_each_part(site, [&](const TileSite& part, TileKind kind) {
    if (kind == TileKind::kSome) kind = kind_inside(part);
    none = none && kind == TileKind::kNone;
    all = all && kind == TileKind::kAll;
  });
  if (none) return TileKind::kNone;
  return all ? TileKind::kAll : TileKind::kSome;
}

template <class T>
void Blocks::apply_blocks(const TileSite& site, const ScoreTile<T>& tile) const {
  for_each_part(site, [&](const TileSite& part, TileKind kind) {
    if (kind == TileKind::kSome) kind = kind_inside(part);
    if (kind == TileKind::kAll) return;
    const ScoreTile<T> own{&tile.at(part.query - site.query, part.key - site.key), tile.stride,
                           tile.lanes};
    if (kind == TileKind::kSome) return inside_->apply(part, own);
    const Rows<T> rows = own.rows(part);
    for (index r = 0; r < rows.rows; ++r) {
      std::fill_n(rows[r], rows.columns, -std::numeric_limits<T>::infinity());
    }
  });
}

void Blocks::apply(const TileSite& site, const ScoreTile<float>& tile) const {
  apply_blocks(site, tile);
}
void Blocks::apply(const TileSite& site, const ScoreTile<double>& tile) const {
  apply_blocks(site, tile);
}

namespace {

// The blocks of [begin, end) for which `keeps` is true, as a range of rows below `count`.
template <class Keeps>
std::pair<index, index> kept_blocks(index blocks, index size, index count, const Keeps& keeps) {
  index first = 0, last = blocks;
  while (first < last && !keeps(first)) ++first;
  while (last > first && !keeps(last - 1)) --last;
  if (first >= last) return {0, 0};
  return {first * size, std::min(count, last * size)};
}

}  // namespace

std::pair<index, index> Blocks::key_range(const Sequence& sequence, index head, index query,
                                          index queries) const {
  const index q = kinds_.query_block;
  return kept_blocks(kinds_.key_blocks, kinds_.key_block, sequence.keys, [&](index block) {
    for (index row = query / q; row * q < query + queries; ++row) {
      if (kind(sequence.number, head, row, block) != TileKind::kNone) return true;
    }
    return false;
  });
}

std::pair<index, index> Blocks::query_range(const Sequence& sequence, index head, index key,
                                            index keys) const {
  const index k = kinds_.key_block;
  return kept_blocks(kinds_.query_blocks, kinds_.query_block, sequence.queries, [&](index block) {
    for (index column = key / k; column * k < key + keys; ++column) {
      if (kind(sequence.number, head, block, column) != TileKind::kNone) return true;
    }
    return false;
  });
}

void Blocks::check_shape(const AttentionSizes& sizes) const {
  const auto& [data, B, H, rows, columns, q, k] = kinds_;
  check((B == 1 || B == sizes.B) && (H == 1 || H == sizes.H) && rows * q >= sizes.T &&
            columns * k >= sizes.S,
        "attention: the block mask is for B={}, H={}, up to {} queries and {} keys; the call has "
        "{}, {}, {}, {}",
        B, H, rows * q, columns * k, sizes.B, sizes.H, sizes.T, sizes.S);
}

}  // namespace fovea::mask
