// SPDX-License-Identifier: Apache-2.0
// Masks are types and say what is kept. They combine with &.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "fovea/attention/tile.h"

namespace fovea {

class TouchedMemory;

/// One idea of what to keep. To add a mask: derive, define keeps() (that is the definition, which
/// the plain reference uses), and, where it pays, classify() and apply(), which are tested against
/// it.
class MaskPart {
 public:
  virtual ~MaskPart() = default;

  /// Is this score kept?
  virtual bool keeps(const ScoreSite& site) const = 0;

  /// Which scores of the tile are kept; kNone tiles are never computed, kAll tiles never masked.
  /// kSome is always correct. Must not look at any matrix of size T x S.
  virtual TileKind classify(const TileSite& site) const;

  /// Sets the scores that are not kept to -infinity. Called for kSome tiles only.
  virtual void apply(const TileSite& site, const ScoreTile<float>& tile) const;
  virtual void apply(const TileSite& site, const ScoreTile<double>& tile) const;

  /// Shortens (never lengthens) a sequence before anything is computed.
  virtual void limit(Sequence& sequence) const;

  /// The alignment that the part asks for, if it asks for one. It holds for the whole call: parts
  /// that ask for different ones are an error.
  virtual std::optional<Align> alignment() const;

  /// The range [begin, end) of keys outside of which no query of [query, query + queries) keeps
  /// any. The default is all keys: the range spares the visits that classify() would only refuse.
  virtual std::pair<index, index> key_range(const Sequence& sequence, index head, index query,
                                            index queries) const;

  /// The same from the other side: the range of queries outside of which none keeps a key of
  /// [key, key + keys).
  virtual std::pair<index, index> query_range(const Sequence& sequence, index head, index key,
                                              index keys) const;

  /// Names the memory that it reads, so that an overlap with what a call writes is noticed.
  virtual void touch(TouchedMemory&) const {}
  /// Throws Error(kShape) unless the mask fits the call.
  virtual void check_shape(const AttentionSizes& sizes) const;

  /// As a person would write it, such as "causal" or "window(64, 0)".
  virtual std::string name() const = 0;
};

/// What is kept: everything, or the conjunction of parts. Cheap to copy; parts are shared.
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
  /// Lengths and alignment, as the parts say.
  void limit(Sequence& sequence) const;
  /// Throws Error(kShape) where two parts ask for different alignments.
  std::optional<Align> alignment() const;
  std::pair<index, index> key_range(const Sequence& sequence, index head, index query,
                                    index queries) const;
  std::pair<index, index> query_range(const Sequence& sequence, index head, index key,
                                      index keys) const;
  std::string name() const;

  /// What both keep.
  friend Mask operator&(Mask a, const Mask& b);

 private:
  std::vector<std::shared_ptr<const MaskPart>> parts_;
};

// Declared here as well, so that two parts find it: mask::Causal() & mask::Window(64, 0).
Mask operator&(Mask a, const Mask& b);

/// Keeps columns [begin, end) of row r of a tile along its lanes; the rest becomes -infinity.
/// The one loop of all masks that keep an interval.
template <class T>
void keep_lanes(const ScoreTile<T>& tile, index row, index lanes, index begin, index end);

}  // namespace fovea
