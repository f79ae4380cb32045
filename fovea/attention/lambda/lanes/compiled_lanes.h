// SPDX-License-Identifier: Apache-2.0
// A program with its gradient, ready to run over tiles: by vectors of every instruction set.
#pragma once

#include <array>
#include <optional>

#include "fovea/attention/lambda/lanes/lane_program.h"
#include "fovea/attention/lambda/symbols/place.h"
#include "fovea/attention/lambda/symbols/tape.h"

namespace fovea {
class Prefetch;
}

namespace fovea::detail {

/// Record a function on tape(), then compile() it, then apply() it to tiles (kConstant), or pull()
/// gradients (kSymbol).
template <class T>
class CompiledLanes {
 public:
  explicit CompiledLanes(LaneTape::Learned learned)
      : tape_(LaneTape::of<T>(learned)), differentiates_(learned == LaneTape::Learned::kSymbol) {}

  LaneTape& tape() { return tape_; }
  /// False if the function cannot run so. `result` is the step of the new score.
  bool compile(int result);

  /// Replaces the scores of a tile. Returns the read whose index is beyond an axis, or null.
  const TableRead* apply(const TileSite& site, const ScoreTile<T>& tile) const;
  /// Replaces the gradients of the new scores by those of the old ones; adds those of learned
  /// numbers and tables to `parameters`.
  const TableRead* pull(const TileSite& site, const ScoreTile<T>& scores,
                        const ScoreTile<T>& dscores, double* parameters) const;
  /// Asks for the rows of tables that apply() will read, and for those of gradients that pull()
  /// will add to.
  void prefetch_apply(const TileSite& site, Prefetch& prefetch) const;
  void prefetch_pull(const TileSite& site, Prefetch& prefetch) const;

 private:
  const TableRead* read(int n) const { return n < 0 ? nullptr : &tape_.read(n); }

  LaneTape tape_;
  bool differentiates_;
  std::optional<LaneProgram> lanes_;
  std::array<int, LaneTape::kMostKnown> sums_;  // steps, each once: numbers may have the same sum
  std::size_t sum_count_ = 0;
};

/// A tile as it lies in memory: rows of lanes.
template <class T>
struct LaneTile {
  Rows<const T> scores;  ///< what the function reads
  Rows<T> values;        ///< holds dscore, if the lane_program reads it, and receives the result
  TileLanes lanes;
  index query, key;  ///< of the first value
};

/// sums[n] = sum of the n-th over the tile. `values` may be `scores` if dscore is not read. The
/// lane_program is one of `program`; its steps that add to the gradient of a table without memory
/// of its own add to `table_sums`. Returns the number of a read whose index was beyond an axis, or
/// -1.
template <class T>
int run_lanes(const LaneTape& program, const LaneProgram& lane_program, const LaneTile<T>& tile,
              double* sums, double* table_sums = nullptr);

}  // namespace fovea::detail
