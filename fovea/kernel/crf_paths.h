// SPDX-License-Identifier: Apache-2.0
// The best paths through a linear-chain CRF (crf.h): Viterbi 1967, "Error bounds for convolutional
// codes and an asymptotically optimum decoding algorithm"; the k best by keeping k for each tag
// (Seshadri, Sundberg 1994, "List Viterbi decoding algorithms with applications").
//
// Scores are summed in double, from the first row on, whatever T is. So the paths are the same bits
// on every instruction set. If the sums of paths are equal where they meet, the one that comes from
// the lower tag is first: of equal scores that with the lower last tag, then that with the lower
// tag before it, and so on. Two whose sums differ where they meet keep that order, even if rounding
// makes their scores equal later.
#pragma once

#include <cstdint>
#include <vector>

#include "fovea/kernel/crf.h"

namespace fovea {

/// tags[n] = the tag of row n in the best path of its sequence; scores_of[s] = s(y) of that path
/// (empty: not wanted). T: float, double.
/// Throws Error(kShape); Error(kOptionValue), which names the sequence, if no path is allowed or a
/// score is NaN.
template <class T>
void crf_viterbi(const Context& ctx, const CrfScores<T>& scores, const CrfRows<T>& rows,
                 Vec<std::int32_t> tags, Vec<double> scores_of = {});

struct CrfPath {
  double score = 0;  ///< s(y); its probability is exp(score - log Z)
  std::vector<std::int32_t> tags = {};

  bool operator==(const CrfPath&) const = default;
};

/// The `count` best paths of each sequence, best first; fewer if there are fewer. The first is that
/// of crf_viterbi. Throws as that; Error(kOptionValue) unless count >= 1.
template <class T>
std::vector<std::vector<CrfPath>> crf_best_paths(const Context& ctx, const CrfScores<T>& scores,
                                                 const CrfRows<T>& rows, index count);

}  // namespace fovea
