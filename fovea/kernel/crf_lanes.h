// SPDX-License-Identifier: Apache-2.0
// The recursions of a CRF along several sequences at once, one in each lane of a vector: crf.cc
// takes this way where a vector of tags would have lanes to spare (crf_chain.h). Nothing outside
// crf needs this header.
#pragma once

#include "fovea/kernel/crf_chain.h"

namespace fovea::detail {

/// A sequence in a lane.
template <class T>
struct CrfLane {
  Rows<const T> x;           ///< [T, K]; T may be 0
  Rows<T> marginals = {};    ///< [T, K]; for the way back
  double log_partition = 0;  ///< of the way forward; 0 if T is 0
};

/// As many sequences as a vector has lanes, or fewer.
template <class T>
struct CrfLanes {
  const CrfTable<T>* table;
  CrfLane<T>* lanes;
  index count;      ///< 1 to the lanes of a vector
  Scaled<T> alpha;  ///< [rows of the longest, K, lanes]
  T* buffer;        ///< [crf_lanes_buffer(K) lanes]
};

/// Vectors of a buffer, for the way back, which takes the most: seven rows of tags, two matrices,
/// and two.
constexpr index crf_lanes_buffer(index tags) { return 2 * tags * tags + 7 * tags + 2; }

template <class T>
struct CrfLaneSteps {
  /// Fills alpha and log_partition.
  void (*forward)(const CrfLanes<T>&);
  /// After forward: the marginals. `pairs` [K, stride]: what is expected of each pair is added, or
  /// null.
  void (*backward)(const CrfLanes<T>&, T* pairs);
};

template <class T>
CrfLaneSteps<T> crf_lane_steps();

}  // namespace fovea::detail
