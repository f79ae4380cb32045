// SPDX-License-Identifier: Apache-2.0
// Bounds of the steps of a program over a rectangle of places, without looking at each of them.
#pragma once

#include <span>
#include <vector>

#include "fovea/attention/lambda/program/score_program.h"
#include "fovea/attention/lambda/symbols/place.h"

namespace fovea::detail {

/// From `low` to `high`, both included; maybe infinite, never NaN.
struct Range {
  double low, high;

  bool is_one() const { return low == high; }
  bool is_zero() const { return low == 0 && high == 0; }
  bool has_zero() const { return low <= 0 && high >= 0; }
};

/// Batches, heads, queries and keys of a rectangle of places; of none may be empty.
struct PlaceRanges {
  Range batch, head, query, key;
};

/// The rectangle of a tile.
PlaceRanges ranges_of(const TileSite& site);

/// Interval arithmetic over a program. A table of whole numbers has the least and the largest value
/// of each 64 entries of its last axis, if it is no larger than a tensor that has a few axes of the
/// call: so the time and the memory depend on the lengths, not on their product.
class ProgramRanges {
 public:
  /// `program` must outlive it.
  explicit ProgramRanges(const ScoreProgram& program);

  /// Finds the range of every step.
  void evaluate(const PlaceRanges& places, std::span<Range> ranges) const;
  /// Finds the range of the result.
  Range result(const PlaceRanges& places) const;
  /// Whether the index of this axis of a read is in it, and not negative, given all ranges.
  bool is_inside(int read, std::size_t axis, std::span<const Range> ranges) const;

 private:
  static constexpr index kBlock = 64;
  static constexpr index kMostEntries = index{1} << 22;
  struct Blocks {
    std::vector<double> low, high;  // [rows][blocks of the last axis]
    index blocks = 0;
  };

  Range step(int n, const PlaceRanges& places, std::span<const Range> ranges) const;
  Range read(int n, std::span<const Range> ranges) const;
  void find_blocks(std::size_t table);

  const ScoreProgram& program_;
  std::vector<Blocks> blocks_;  // of each table
};

}  // namespace fovea::detail
