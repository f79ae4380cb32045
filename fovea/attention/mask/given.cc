// SPDX-License-Identifier: Apache-2.0
#include "fovea/attention/mask/given.h"

#include <limits>

#include "fovea/base/check.h"

namespace fovea::detail {

namespace {

// Views bools as bytes: a bool is one byte, 0 or 1, and C++ allows reading any object as bytes.
ScoreView<const std::uint8_t> bytes_of(const ScoreView<const bool>& v) {
  static_assert(sizeof(bool) == 1);
  return {reinterpret_cast<const std::uint8_t*>(v.data),
          v.batch,
          v.heads,
          v.queries,
          v.keys,
          v.batch_stride,
          v.head_stride,
          v.query_stride};
}

}  // namespace

DenseMask::DenseMask(ScoreView<const bool> values, Polarity polarity)
    : DenseMask(bytes_of(values), polarity) {}

// Values of query i, from key 0 of the sequence on.
const std::uint8_t* DenseMask::row(const Sequence& sequence, index head, index i) const {
  return values_.row(sequence.batch, head, sequence.query_row + i) + sequence.key_row;
}

bool DenseMask::keeps(const ScoreSite& site) const {
  const bool set = row(site.sequence, site.head, site.i)[site.j] != 0;
  return set == (polarity_ == Polarity::kKeep);
}

template <class T>
void DenseMask::apply_dense(const TileSite& site, const ScoreTile<T>& tile) const {
  const T infinity = std::numeric_limits<T>::infinity();
  const bool kept_when_set = polarity_ == Polarity::kKeep;
  for (index r = 0; r < site.queries; ++r) {
    const std::uint8_t* values = row(site.sequence, site.head, site.query + r) + site.key;
    for (index c = 0; c < site.keys; ++c) {
      T& score = tile.at(r, c);
      score = (values[c] != 0) == kept_when_set ? score : -infinity;
    }
  }
}

void DenseMask::apply(const TileSite& site, const ScoreTile<float>& tile) const {
  apply_dense(site, tile);
}
void DenseMask::apply(const TileSite& site, const ScoreTile<double>& tile) const {
  apply_dense(site, tile);
}

void DenseMask::name_memory(OverlapCheck& memory) const { memory.read("a dense mask", values_); }

void DenseMask::check_shape(const AttentionSizes& sizes) const {
  const auto [B, T, S, H, G, D, Dv] = sizes;
  const bool fits = (values_.batch == 1 || values_.batch == B) &&
                    (values_.heads == 1 || values_.heads == H) &&
                    (values_.queries == 1 || values_.queries == T) && values_.keys == S;
  check(fits,
        "attention: the {} mask must be [{} or 1, {} or 1, {} or 1, {}]; it is [{}, {}, {}, {}]",
        name(), B, H, T, S, values_.batch, values_.heads, values_.queries, values_.keys);
  check(B == 0 || H == 0 || T == 0 || S == 0 || values_.data != nullptr,
        "attention: the {} mask has a shape but no data", name());
}

}  // namespace fovea::detail
