// SPDX-License-Identifier: Apache-2.0
// The recursions of a CRF along one sequence: crf.cc hands out sequences, crf_chain.cc walks along
// one on the current instruction set. Nothing outside crf needs this header.
//
// A sum of exp(scores) overflows and underflows, and sums of logarithms take an exponential and a
// logarithm for each of K^2 numbers of a step. So numbers here are pairs m 2^e, with m of type T
// near 1 and e a whole number of type T, which are multiplied without either function. 0 is m = 0,
// e = kNoExponent<T>. No scores leave their range. They are as exact as T while e is: up to 2^24
// (float; double: 2^53). The exponents of a row are relative to its largest, so that is a gap of
// 1.1e7 (6.2e15) between the scores of paths up to that row. A path that is further behind still
// counts, but its exponent is rounded as any T is.
//
// Along several sequences at once, one in each lane of a vector, too: crf.cc takes this way where a
// vector of tags would have lanes to spare. Nothing outside crf needs this header.
#pragma once

#include <cstdint>

#include "fovea/base/view.h"

namespace fovea::detail {

/// Lanes of the widest vector there is.
template <class T>
inline constexpr index kCrfMostLanes = static_cast<index>(64 / sizeof(T));

/// Far below the exponent of any number, and four of them can be added.
template <class T>
inline constexpr T kNoExponent = static_cast<T>(-1e37);

/// The numbers m 2^e of a row, or of rows `stride` apart.
template <class T>
struct Scaled {
  T* m = nullptr;
  T* e = nullptr;

  Scaled row(index r, index stride) const { return {m + r * stride, e + r * stride}; }
};

/// exp(transitions) of a call in one direction, divided by 2^top so that the largest exponent is 0.
/// [K, stride]; rows are whole vectors, what is beyond K is 0.
template <class T>
struct CrfMatrix {
  Scaled<T> parts;
  T* plain;  ///< m 2^e; 0 where that is tiny
};

/// The table of scores that all sequences of a call share. K tags.
template <class T>
struct CrfTable {
  index tags, stride;     ///< stride: K rounded up to whole vectors
  CrfMatrix<T> forward;   ///< [a][b]: from a to b
  CrfMatrix<T> backward;  ///< [b][a]
  Scaled<T> start, end;   ///< [stride]
  double top;
};

/// One sequence, T >= 1 rows.
template <class T>
struct CrfChain {
  const CrfTable<T>* table;
  Rows<const T> x;  ///< [T, K]
  Scaled<T> alpha;  ///< [T, stride]: sums over the paths up to each row, each row's largest e is 0
  T* buffer;        ///< [kCrfBuffers stride]
};
inline constexpr index kCrfBuffers = 16;  // of the way back; forward takes three

/// The results of the backward pass over a chain.
template <class T>
struct CrfPull {
  Rows<T> marginals;  ///< [T, K], or no data
  /// [K, stride]; what is expected of each pair is added, or null
  T* pairs = nullptr;
};

template <class T>
struct CrfSteps {
  index lanes;  ///< of a vector
  /// to = exp(x), n numbers; x = -infinity gives 0.
  void (*split)(const T* x, index n, Scaled<T> to);
  /// plain = m 2^e, 0 where that is tiny; n numbers, whole vectors.
  void (*join)(Scaled<const T> from, index n, T* plain);
  /// Fills alpha and returns log Z.
  double (*forward)(const CrfChain<T>&);
  /// After forward.
  void (*backward)(const CrfChain<T>&, const CrfPull<T>&);
};

template <class T>
CrfSteps<T> crf_steps();

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
