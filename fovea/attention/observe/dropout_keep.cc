// SPDX-License-Identifier: Apache-2.0
#include "fovea/attention/observe/dropout_keep.h"

#include <algorithm>
#include <limits>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "fovea/attention/observe/dropout_keep.cc"
#include "hwy/foreach_target.h"  // compiles this file once for each instruction set
//
#include "fovea/attention/dropout-inl.h"

HWY_BEFORE_NAMESPACE();
namespace fovea {
namespace HWY_NAMESPACE {
namespace {

// Bit r of word c is 1 if dropout keeps the r-th query and c-th key of the tile.
void KeptBits(const Dropout& dropout, const TileSite& site, std::uint64_t* bits) {
  const DropoutRule rule = dropout_rule(dropout);
  std::fill_n(bits, site.keys, rule.active() ? std::uint64_t{0} : ~std::uint64_t{0});
  if (!rule.active()) return;
  detail::HWY_NAMESPACE::DropoutBits(dropout_stream(dropout, site.sequence, site.head), rule,
                                     site.query, site.key, site.keys, bits);
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace fovea
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace fovea::observe {

HWY_EXPORT(KeptBits);

template <class T>
void DropoutKeep<T>::row(const ObservedRow<T>& row) const {
  const DropoutRule rule = dropout_rule(*row.dropout);
  const DropoutStream stream = dropout_stream(*row.dropout, row.sequence, row.head);
  std::uint8_t* const keep = row_of(row.sequence, row.head, row.i);
  for (index j = 0; j < row.scores.size; ++j) {
    const bool masked = row.scores[j] == -std::numeric_limits<T>::infinity();
    keep[j] = masked || (rule.active() && drops(rule, stream, row.i, j)) ? 0 : 1;
  }
}

template <class T>
void DropoutKeep<T>::clear() const {
  detail::fill(keep_, 0);
}

template <class T>
void DropoutKeep<T>::see(const ObservedTile<T>& tile, Rows<T>) const {
  const TileSite& site = tile.site;
  std::uint64_t bits[kRowBlock];
  FOVEA_DISPATCH(KeptBits)(*tile.queries.dropout, site, bits);
  for (index r = 0; r < site.queries; ++r) {
    std::uint8_t* const keep = row_of(site.sequence, site.head, site.query + r) + site.key;
    for (index c = 0; c < site.keys; ++c) {
      const bool masked = tile.scores.at(r, c) == -std::numeric_limits<T>::infinity();
      keep[c] = masked ? 0 : static_cast<std::uint8_t>(bits[c] >> r & 1);
    }
  }
}

template <class T>
void DropoutKeep<T>::name_memory(OverlapCheck& memory) const {
  memory.write("dropout_keep", keep_);
}

template <class T>
void DropoutKeep<T>::check_shape(const AttentionSizes& sizes) const {
  detail::check_scores_written("dropout_keep", keep_, {sizes.B, sizes.H, sizes.T, sizes.S});
}

template class DropoutKeep<float>;
template class DropoutKeep<double>;

}  // namespace fovea::observe
#endif  // HWY_ONCE
