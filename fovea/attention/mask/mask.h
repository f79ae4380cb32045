// SPDX-License-Identifier: Apache-2.0
// Masks are types and say what is kept. They combine with &.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "fovea/attention/parts.h"

namespace fovea {

/// Do the keys that each query keeps form a prefix of its sequence's keys?
enum class KeptPrefix {
  kNone,        ///< no, or not known
  kAll,         ///< all keys (of what limit() leaves)
  kToPosition,  ///< those up to the position of the query
};

/// One rule of what to keep. To add a mask, derive and define keeps(): this is the definition,
/// which the plain reference uses. For speed also override classify() and apply(); tests compare
/// them with keeps().
class MaskPart {
 public:
  virtual ~MaskPart() = default;

  /// Is this score kept?
  virtual bool keeps(const ScoreSite& site) const = 0;

  /// Which scores of the tile are kept. kNone tiles are skipped, kAll tiles are not masked; kSome
  /// is always correct. Must not read a matrix of size T x S.
  virtual TileKind classify(const TileSite& site) const;

  /// Sets the scores that are not kept to -infinity. Called for kSome tiles only.
  virtual void apply(const TileSite& site, const ScoreTile<float>& tile) const;
  virtual void apply(const TileSite& site, const ScoreTile<double>& tile) const;

  /// Shortens (never lengthens) a sequence before anything is computed.
  virtual void limit(Sequence& sequence) const;

  /// Calls whose masks all keep prefixes may be computed by sums over keys (linear/linear.h).
  virtual KeptPrefix kept_prefix() const { return KeptPrefix::kNone; }

  /// The alignment that the part asks for, if any. It applies to the whole call; parts that ask for
  /// different ones are an error.
  virtual std::optional<Align> alignment() const;

  /// A range [begin, end) of keys that contains all keys kept by queries [query, query + queries).
  /// The default is all keys. Tiles outside the range are not even classified.
  virtual std::pair<index, index> key_range(const Sequence& sequence, index head, index query,
                                            index queries) const;

  /// A range of queries that contains all queries that keep a key of [key, key +
  /// keys).
  virtual std::pair<index, index> query_range(const Sequence& sequence, index head, index key,
                                              index keys) const;

  /// Is key_range() of a single query exact? Then the keys that a query keeps need not be counted
  /// one by one.
  virtual bool keeps_key_range() const { return false; }

  /// Can it be part of a call of packed sequences?
  virtual bool takes_packed() const { return true; }

  /// Names the memory that it reads, so that an output that overlaps it is an error.
  virtual void name_memory(OverlapCheck&) const {}
  /// Throws Error(kShape) unless the mask fits the call.
  virtual void check_shape(const AttentionSizes& sizes) const;
  /// A call begins: what the part kept of an earlier one may be old. It has been checked.
  virtual void start_call() const {}

  /// For people, such as "causal" or "window(64, 0)".
  virtual std::string name() const = 0;
};

/// Keeps everything, or what all of its parts keep. Cheap to copy; parts are shared.
class Mask {
 public:
  /// Everything. Costs nothing.
  Mask() = default;
  /// A bare array of booleans does not say whether it keeps or drops: write Keep or Drop.
  Mask(const bool*) = delete;
  template <class Part>
  requires std::is_base_of_v<MaskPart, Part> Mask(Part part)
      : parts_{std::make_shared<const Part>(std::move(part))} {}
  /// Throws Error(kShape) for no part at all.
  explicit Mask(std::shared_ptr<const MaskPart> part);

  const std::vector<std::shared_ptr<const MaskPart>>& parts() const { return parts_; }

  bool keeps(const ScoreSite& site) const;
  TileKind classify(const TileSite& site) const;
  template <class T>
  void apply(const TileSite& site, const ScoreTile<T>& tile) const;
  /// Applies the lengths and the alignment of the parts.
  void limit(Sequence& sequence) const;
  /// The prefix of keys that all parts together keep.
  KeptPrefix kept_prefix() const;
  /// Throws Error(kShape) where two parts ask for different alignments.
  std::optional<Align> alignment() const;
  std::pair<index, index> key_range(const Sequence& sequence, index head, index query,
                                    index queries) const;
  std::pair<index, index> query_range(const Sequence& sequence, index head, index key,
                                      index keys) const;
  /// The number of keys that query i keeps. In constant time if every part keeps_key_range(),
  /// otherwise by keeps() of each key in key_range().
  index kept_keys(const Sequence& sequence, index head, index i) const;
  std::string name() const;

  /// Keeps what both a and b keep.
  friend Mask operator&(Mask a, const Mask& b);

 private:
  std::vector<std::shared_ptr<const MaskPart>> parts_;
};

// Declared here as well, so that two parts find it: mask::Causal() & mask::Window(64, 0).
Mask operator&(Mask a, const Mask& b);

}  // namespace fovea

namespace fovea::detail {

/// Keeps columns [begin, end) of row r of a tile along its lanes; the rest becomes -infinity. All
/// masks that keep an interval use this loop.
template <class T>
void keep_lanes(const ScoreTile<T>& tile, index row, index lanes, index begin, index end);

}  // namespace fovea::detail
