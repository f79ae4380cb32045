// SPDX-License-Identifier: Apache-2.0
#include "fovea/attention/mask/mask.h"

#include <algorithm>
#include <limits>

#include "fovea/base/check.h"

namespace fovea {

namespace {

template <class T>
void apply_by_definition(const MaskPart& mask, const TileSite& site, const ScoreTile<T>& tile) {
  for (index r = 0; r < site.queries; ++r) {
    for (index c = 0; c < site.keys; ++c) {
      if (!mask.keeps(site.at(r, c))) tile.at(r, c) = -std::numeric_limits<T>::infinity();
    }
  }
}

// The overlap of two ranges; empty if they do not meet.
std::pair<index, index> overlap(std::pair<index, index> a, std::pair<index, index> b) {
  const index begin = std::max(a.first, b.first);
  return {begin, std::max(begin, std::min(a.second, b.second))};
}

}  // namespace

TileKind MaskPart::classify(const TileSite&) const { return TileKind::kSome; }

void MaskPart::apply(const TileSite& site, const ScoreTile<float>& tile) const {
  apply_by_definition(*this, site, tile);
}

void MaskPart::apply(const TileSite& site, const ScoreTile<double>& tile) const {
  apply_by_definition(*this, site, tile);
}

void MaskPart::limit(Sequence&) const {}

std::optional<Align> MaskPart::alignment() const { return std::nullopt; }

std::pair<index, index> MaskPart::key_range(const Sequence& sequence, index, index, index) const {
  return {0, sequence.keys};
}

std::pair<index, index> MaskPart::query_range(const Sequence& sequence, index, index, index) const {
  return {0, sequence.queries};
}

void MaskPart::check_shape(const AttentionSizes&) const {}

Mask operator&(Mask a, const Mask& b) {
  a.parts_.insert(a.parts_.end(), b.parts_.begin(), b.parts_.end());
  return a;
}

Mask::Mask(std::shared_ptr<const MaskPart> part) : parts_{std::move(part)} {
  detail::check_part(parts_[0] != nullptr, "a mask");
}

bool Mask::keeps(const ScoreSite& site) const {
  return std::all_of(parts_.begin(), parts_.end(),
                     [&](const auto& part) { return part->keeps(site); });
}

TileKind Mask::classify(const TileSite& site) const {
  TileKind kind = TileKind::kAll;
  for (const auto& part : parts_) {
    const TileKind one = part->classify(site);
    if (one == TileKind::kNone) return TileKind::kNone;
    if (one == TileKind::kSome) kind = TileKind::kSome;
  }
  return kind;
}

template <class T>
void Mask::apply(const TileSite& site, const ScoreTile<T>& tile) const {
  for (const auto& part : parts_) {
    if (part->classify(site) == TileKind::kSome) part->apply(site, tile);
  }
}
template void Mask::apply(const TileSite&, const ScoreTile<float>&) const;
template void Mask::apply(const TileSite&, const ScoreTile<double>&) const;

void Mask::limit(Sequence& sequence) const {
  for (const auto& part : parts_) {
    Sequence cut = sequence;
    part->limit(cut);
    check(cut.queries >= 0 && cut.queries <= sequence.queries && cut.keys >= 0 &&
              cut.keys <= sequence.keys,
          "attention: the {} mask may only shorten a sequence; of {} queries and {} keys it made "
          "{} and {}",
          part->name(), sequence.queries, sequence.keys, cut.queries, cut.keys);
    sequence.queries = cut.queries;
    sequence.keys = cut.keys;
  }
  sequence.align = alignment().value_or(sequence.align);
}

KeptPrefix Mask::kept_prefix() const {
  KeptPrefix all = KeptPrefix::kAll;
  for (const auto& part : parts_) {
    const KeptPrefix one = part->kept_prefix();
    if (one == KeptPrefix::kNone) return KeptPrefix::kNone;
    if (one == KeptPrefix::kToPosition) all = KeptPrefix::kToPosition;
  }
  return all;
}

std::optional<Align> Mask::alignment() const {
  std::optional<Align> common;
  for (const auto& part : parts_) {
    const std::optional<Align> asked = part->alignment();
    check(!asked || !common || asked == common, Hint{"give all masks of the call the same Align"},
          "attention: one call has one alignment; the mask is {}", name());
    if (asked) common = asked;
  }
  return common;
}

std::pair<index, index> Mask::key_range(const Sequence& sequence, index head, index query,
                                        index queries) const {
  std::pair<index, index> range{0, sequence.keys};
  for (const auto& part : parts_) {
    range = overlap(range, part->key_range(sequence, head, query, queries));
  }
  return range;
}

std::pair<index, index> Mask::query_range(const Sequence& sequence, index head, index key,
                                          index keys) const {
  std::pair<index, index> range{0, sequence.queries};
  for (const auto& part : parts_) {
    range = overlap(range, part->query_range(sequence, head, key, keys));
  }
  return range;
}

index Mask::kept_keys(const Sequence& sequence, index head, index i) const {
  const auto [begin, end] = key_range(sequence, head, i, 1);
  if (std::all_of(parts_.begin(), parts_.end(),
                  [](const auto& part) { return part->keeps_key_range(); })) {
    return end - begin;
  }
  index kept = 0;
  for (index j = begin; j < end; ++j) kept += keeps({sequence, head, i, j}) ? 1 : 0;
  return kept;
}

std::string Mask::name() const {
  if (parts_.empty()) return "all";
  std::string text;
  for (const auto& part : parts_) text += (text.empty() ? "" : " & ") + part->name();
  return text;
}

}  // namespace fovea

namespace fovea::detail {

template <class T>
void keep_lanes(const ScoreTile<T>& tile, index row, index lanes, index begin, index end) {
  T* values = tile.data + row * tile.stride;
  const index first = std::clamp<index>(begin, 0, lanes);
  const index last = std::clamp<index>(end, first, lanes);
  std::fill(values, values + first, -std::numeric_limits<T>::infinity());
  std::fill(values + last, values + lanes, -std::numeric_limits<T>::infinity());
}
template void keep_lanes(const ScoreTile<float>&, index, index, index, index);
template void keep_lanes(const ScoreTile<double>&, index, index, index, index);

}  // namespace fovea::detail
