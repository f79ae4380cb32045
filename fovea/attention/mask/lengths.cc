// SPDX-License-Identifier: Apache-2.0
#include "fovea/attention/mask/lengths.h"

#include <algorithm>

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

}  // namespace fovea::mask
