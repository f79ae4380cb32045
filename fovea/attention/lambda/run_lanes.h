// SPDX-License-Identifier: Apache-2.0
// Runs the steps of a program over a tile of scores, by vectors of every instruction set.
#pragma once

#include "fovea/attention/lambda/lane_program.h"
#include "fovea/attention/lambda/place.h"

namespace fovea::detail {

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
