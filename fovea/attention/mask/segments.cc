// SPDX-License-Identifier: Apache-2.0
#include "fovea/attention/mask/segments.h"

#include <algorithm>
#include <limits>
#include <string_view>

#include "fovea/base/check.h"

namespace fovea::mask {

namespace {

void check_lengths(std::string_view which, Vec<const std::int32_t> lengths, index B,
                   std::string_view axis, index most) {
  check(lengths.size == B, "attention: {} must be [B={}]; it is [{}]", which, B, lengths.size);
  check(B == 0 || lengths.data != nullptr, "attention: {} have a size but no data", which);
  for (index b = 0; b < B; ++b) {
    check(lengths[b] >= 0 && lengths[b] <= most, "attention: {}[{}] must be in 0..{}={}; it is {}",
          which, b, axis, most, lengths[b]);
  }
}

}  // namespace

// limit() cuts a sequence to its length before any tile is made, so no tile reaches beyond the
// length.
bool KeyLengths::keeps(const ScoreSite& site) const {
  return site.j < lengths_[site.sequence.batch];
}
TileKind KeyLengths::classify(const TileSite&) const { return TileKind::kAll; }
void KeyLengths::limit(Sequence& sequence) const {
  sequence.keys = std::min<index>(sequence.keys, lengths_[sequence.batch]);
}
std::pair<index, index> KeyLengths::key_range(const Sequence& sequence, index, index, index) const {
  return {0, std::min<index>(sequence.keys, lengths_[sequence.batch])};
}
void KeyLengths::name_memory(OverlapCheck& memory) const { memory.read("key_lengths", lengths_); }

void KeyLengths::check_shape(const AttentionSizes& sizes) const {
  check_lengths("key_lengths", lengths_, sizes.B, "S", sizes.S);
}

bool QueryLengths::keeps(const ScoreSite& site) const {
  return site.i < lengths_[site.sequence.batch];
}
TileKind QueryLengths::classify(const TileSite&) const { return TileKind::kAll; }
void QueryLengths::limit(Sequence& sequence) const {
  sequence.queries = std::min<index>(sequence.queries, lengths_[sequence.batch]);
}
std::pair<index, index> QueryLengths::key_range(const Sequence& sequence, index, index query,
                                                index) const {
  return {0, query < lengths_[sequence.batch] ? sequence.keys : 0};
}
void QueryLengths::name_memory(OverlapCheck& memory) const {
  memory.read("query_lengths", lengths_);
}

void QueryLengths::check_shape(const AttentionSizes& sizes) const {
  check_lengths("query_lengths", lengths_, sizes.B, "T", sizes.T);
}

namespace {

void check_numbers(std::string_view name, Rows<const std::int32_t> numbers, index B,
                   std::string_view axis, index length) {
  check(numbers.rows == B && numbers.columns == length,
        "attention: {} must be [B={}, {}={}]; they are [{}, {}]", name, B, axis, length,
        numbers.rows, numbers.columns);
  check(B == 0 || length == 0 || numbers.data != nullptr, "attention: {} have a shape but no data",
        name);
}

}  // namespace

bool Segments::keeps(const ScoreSite& site) const {
  return queries_of(site.sequence)[site.i] == keys_of(site.sequence)[site.j];
}

TileKind Segments::classify(const TileSite& site) const {
  const std::int32_t* const q = queries_of(site.sequence) + site.query;
  const std::int32_t* const k = keys_of(site.sequence) + site.key;
  const auto [first_q, last_q] = std::minmax_element(q, q + site.queries);
  const auto [first_k, last_k] = std::minmax_element(k, k + site.keys);
  if (*last_q < *first_k || *last_k < *first_q) return TileKind::kNone;
  const bool one = *first_q == *last_q && *first_k == *last_k;
  return one ? TileKind::kAll : TileKind::kSome;
}

template <class T>
void Segments::apply_segments(const TileSite& site, const ScoreTile<T>& tile) const {
  const bool keys_in_rows = tile.lanes == TileLanes::kQueries;
  const std::int32_t* const q = queries_of(site.sequence) + site.query;
  const std::int32_t* const k = keys_of(site.sequence) + site.key;
  const std::int32_t* const of_rows = keys_in_rows ? k : q;
  const std::int32_t* const of_lanes = keys_in_rows ? q : k;
  const index rows = keys_in_rows ? site.keys : site.queries;
  const index lanes = keys_in_rows ? site.queries : site.keys;
  for (index r = 0; r < rows; ++r) {
    T* const scores = tile.data + r * tile.stride;
    for (index lane = 0; lane < lanes; ++lane) {
      const bool kept = of_lanes[lane] == of_rows[r];
      scores[lane] = kept ? scores[lane] : -std::numeric_limits<T>::infinity();
    }
  }
}

void Segments::apply(const TileSite& site, const ScoreTile<float>& tile) const {
  apply_segments(site, tile);
}
void Segments::apply(const TileSite& site, const ScoreTile<double>& tile) const {
  apply_segments(site, tile);
}

void Segments::name_memory(OverlapCheck& memory) const {
  memory.read("query segments", queries_);
  memory.read("key segments", keys_);
}

void Segments::check_shape(const AttentionSizes& sizes) const {
  check_numbers("query segments", queries_, sizes.B, "T", sizes.T);
  check_numbers("key segments", keys_, sizes.B, "S", sizes.S);
}

bool NotPadding::keeps(const ScoreSite& site) const {
  return ids_of(site.sequence)[site.j] != pad_;
}

TileKind NotPadding::classify(const TileSite& site) const {
  const std::int32_t* const ids = ids_of(site.sequence) + site.key;
  const index padding = std::count(ids, ids + site.keys, pad_);
  return padding == 0 ? TileKind::kAll : padding == site.keys ? TileKind::kNone : TileKind::kSome;
}

void NotPadding::name_memory(OverlapCheck& memory) const { memory.read("ids", ids_); }

void NotPadding::check_shape(const AttentionSizes& sizes) const {
  check_numbers("ids", ids_, sizes.B, "S", sizes.S);
}

std::vector<std::int32_t> lengths_of(Rows<const std::int32_t> ids, std::int32_t pad) {
  std::vector<std::int32_t> lengths;
  for (index b = 0; b < ids.rows; ++b) {
    const std::int32_t* const row = ids[b];
    const std::int32_t* const end = std::find(row, row + ids.columns, pad);
    const std::int32_t* const token =
        std::find_if(end, row + ids.columns, [&](std::int32_t id) { return id != pad; });
    check(token == row + ids.columns,
          "ids[{}] has padding ({}) at {} and a token behind it, at {}: a length cannot say that; "
          "use mask::NotPadding",
          b, pad, end - row, token - row);
    lengths.push_back(static_cast<std::int32_t>(end - row));
  }
  return lengths;
}

}  // namespace fovea::mask
